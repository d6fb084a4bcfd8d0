// SPDX-License-Identifier: Apache-2.0
// Every pattern of lines at a group's ends, and the example of the specification.
#include <gtest/gtest.h>

#include <vector>

#include "base/kernel.hpp"
#include "codecs/common/testing/schedules.hpp"
#include "codecs/common/testing/states.hpp"
#include "codecs/zeros/warp.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;
const Entry& entry() { return *find_codec("zeros", 5); }

TEST(Zeros, LeavesOutExactlyTheZeroLines) {
  States states;
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    for (const size_t size : {1, 64, 65, 4095, 4096, 4097, 8192, 20000}) {
      for (size_t every = 1; every < 130; every += every < 10 ? 1 : 17) {
        Data raw(size);
        size_t expected = ((size + 63) / 64 + 7) / 8;
        for (size_t line = 0; line * 64 < size; line += every) {
          const size_t line_size = std::min<size_t>(64, size - line * 64);
          raw[line * 64 + line * 29 % line_size] = std::byte{1};
          expected += line_size;
        }
        Data code(expected), back(size, std::byte{9});
        size_t written = 0;
        ASSERT_TRUE(kernel->encode(states.of(*kernel, {}), {}, raw, code, &written).ok());
        ASSERT_EQ(written, expected) << size << " every " << every;
        ASSERT_TRUE(kernel->decode(states.of(*kernel, {}), {}, code, back, &written).ok());
        ASSERT_TRUE(back == raw);
        code.pop_back();
        ASSERT_EQ(kernel->decode(states.of(*kernel, {}), {}, code, back, &written).code(),
                  Code::kCorrupt);
        ASSERT_EQ(kernel->encode(states.of(*kernel, {}), {}, raw, code, &written).code(),
                  Code::kDstTooSmall);
      }
    }
  }
}

TEST(Zeros, TheExampleOfTheSpecification) {
  Data raw(70);
  Data expected = {std::byte{2}, std::byte{0}};
  for (size_t i = 65; i < 70; ++i) {
    raw[i] = static_cast<std::byte>(i - 64);
    expected.push_back(raw[i]);
  }
  Data code(200);
  size_t written = 0;
  States states;
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    ASSERT_TRUE(kernel->encode(states.of(*kernel, {}), {}, raw, code, &written).ok());
    EXPECT_EQ(Data(code.begin(), code.begin() + static_cast<ptrdiff_t>(written)), expected);
    Data zero_line = {std::byte{1}};
    zero_line.resize(65);
    Data back(64);
    EXPECT_EQ(kernel->decode(states.of(*kernel, {}), {}, zero_line, back, &written).code(),
              Code::kCorrupt);
  }
}

TEST(Zeros, OnAGpuAnyOrderOfWarpsWillDo) {
  const schedules::Schedules<zeros::Warps> all("zeros", {}, schedules::waves(150001, 1));
  all.hold(20);
  all.need(3, 3);
}

}  // namespace
}  // namespace wirepress
