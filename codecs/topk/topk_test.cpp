// SPDX-License-Identifier: Apache-2.0
// topk sends what sorting says, for every size, ratio and kind of value.
#include "codecs/topk/topk.hpp"

#include "codecs/common/sparse/warps.hpp"
#include "codecs/common/testing/schedules.hpp"
#include "codecs/common/testing/sparse.hpp"

namespace wirepress::sparse {
namespace {

void check(std::vector<Coder>* all, const Floats& x, size_t k) {
  const Floats expected = masked(x, largest(x, k, 1));
  for (Coder& coder : *all) {
    const Data code = coder.encode(x);
    ASSERT_TRUE(same_bits(coder.decode(code, x.size()), expected)) << coder.variant();
    ASSERT_EQ(coder.encode(expected), code) << coder.variant();
  }
}

TEST(Topk, SendsExactlyTheLargest) {
  struct {
    const char* text;
    double value;
  } const ratios[] = {{"1e-9", 1e-9}, {"0.001", 1e-3}, {"0.04", 0.04}, {"0.5", 0.5}, {"1", 1}};
  for (const auto& ratio : ratios) {
    std::vector<Coder> all = coders("topk", {ratio.text});
    for (const size_t n : {0, 1, 2, 16, 63, 64, 65, 500, 4096, 4097, 9001}) {
      // No n * ratio here is so near to a whole number that a double could not tell.
      const size_t k = static_cast<size_t>(std::ceil(static_cast<double>(n) * ratio.value - 1e-12));
      for (const Floats& x : hard_blocks(n)) {
        check(&all, x, std::max<size_t>(k, n > 0));
        if (HasFatalFailure()) FAIL() << ratio.text << " of " << n;
      }
    }
  }
}

TEST(Topk, WhateverTheGuess) {
  constexpr size_t kN = 131072;
  std::vector<Coder> all = coders("topk");
  for (const size_t apart : {16, 128, 256, 1000, 20000}) {
    for (const size_t run : {1, 16, 100}) {
      Floats x = gradient(kN, 5);
      for (size_t i = 0; i < kN; ++i) x[i] *= i % apart < run ? 1e3f : 1.0f;
      check(&all, x, 132);
    }
  }
  Floats rising(kN);  // every value is the largest so far
  for (size_t i = 0; i < kN; ++i) rising[i] = static_cast<float>(i);
  check(&all, rising, 132);
}

TEST(Topk, SizeAtTheDefault) {
  constexpr size_t kN = 131072;
  const size_t size = coders("topk").front().encode(gradient(kN, 1)).size();
  EXPECT_EQ(size, 4u + 132 * 4 + (132 + 255 + 7) / 8 + 132 * 9 / 8 + 1);
  EXPECT_GE(4.0 * kN / static_cast<double>(size), 700);
}

TEST(Topk, LastBytesAreRaw) {
  Data raw(4 * 10 + 3, std::byte{0x41});
  for (Coder& coder : coders("topk", {"0.1"})) {
    const Data code = coder.encode_bytes(raw);
    EXPECT_EQ(Data(code.end() - 3, code.end()), Data(3, std::byte{0x41}));
    EXPECT_TRUE(coder.try_decode(code, raw.size()).ok());
  }
}

TEST(Topk, OnAGpuAnyOrderOfWarpsWillDo) {
  Args args;
  for (const int ratio : {real_param(1, -2), real_param(4, -1)}) {
    args.value[topk::kRatio] = ratio;
    const schedules::Schedules<WarpBlocks<topk::Rules>> all("topk", args,
                                                            schedules::waves(150003, 1));
    all.hold(5);
    all.need(2, 0);
  }
}

}  // namespace
}  // namespace wirepress::sparse
