// SPDX-License-Identifier: Apache-2.0
// Every element size against the definition in spec.md, and what size 0 becomes.
#include <gtest/gtest.h>

#include <vector>

#include "base/kernel.hpp"
#include "codecs/common/testing/schedules.hpp"
#include "codecs/common/testing/states.hpp"
#include "codecs/shuffle/warp.hpp"

namespace wirepress {
namespace {

const Entry& entry() { return *find_codec("shuffle", 7); }

std::vector<std::byte> by_definition(const std::vector<std::byte>& raw, size_t size) {
  std::vector<std::byte> out = raw;
  const size_t n = raw.size() / size;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < size; ++j) out[j * n + i] = raw[i * size + j];
  return out;
}

TEST(Shuffle, EverySizeIsTheTransposition) {
  States states;
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    for (int size = 1; size <= 64; ++size) {
      for (const size_t elements : {1, 31, 32, 33, 64, 511, 513, 1200}) {
        const size_t total = elements * static_cast<size_t>(size) + static_cast<size_t>(size) / 2;
        std::vector<std::byte> raw(total), coded(total), back(total);
        for (size_t i = 0; i < total; ++i) raw[i] = static_cast<std::byte>(i * 31 + i / 256);
        const Args args{DType::kBytes, {size}};
        size_t written = 0;
        ASSERT_TRUE(kernel->encode(states.of(*kernel, args), args, raw, coded, &written).ok());
        ASSERT_EQ(coded, by_definition(raw, static_cast<size_t>(size)))
            << size << " x " << elements;
        ASSERT_TRUE(kernel->decode(states.of(*kernel, args), args, coded, back, &written).ok());
        ASSERT_EQ(back, raw) << size << " x " << elements;
      }
    }
  }
}

TEST(Shuffle, SizeZeroIsThatOfTheDtype) {
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    Args args{static_cast<DType>(dtype), {0}};
    ASSERT_TRUE(entry().codec->check(&args).ok());
    const int expected = dtype == 0 ? 4 : static_cast<int>(dtype_size(args.dtype));
    EXPECT_EQ(args.value[0], expected) << dtype_name(args.dtype);
    args.value[0] = 3;
    ASSERT_TRUE(entry().codec->check(&args).ok());
    EXPECT_EQ(args.value[0], 3);
  }
}

TEST(Shuffle, OnAGpuAnyOrderOfWarpsWillDo) {
  for (const int size : {3, 4, 16}) {
    const schedules::Schedules<shuffle::Warps> all("shuffle", {DType::kBytes, {size}},
                                                   schedules::waves(50003, 1));
    all.hold(10);
    if (size != 4) all.need(1, 1);  // of 4 bytes, a warp takes what it brought
  }
}

}  // namespace
}  // namespace wirepress
