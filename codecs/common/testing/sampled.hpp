// SPDX-License-Identifier: Apache-2.0
// What the tests of dgc and graddrop share: a threshold that a sample of the values gives, computed
// in the plainest way (codecs/common/sparse/spec.md).
#pragma once

#include <algorithm>

#include "codecs/common/random.hpp"
#include "codecs/common/testing/sparse.hpp"

namespace wirepress::sparse {

struct Shares {
  const char* ratio_text;
  double ratio;
  const char* sample_text;
  double sample;
};

inline size_t ceil_of(double x) { return static_cast<size_t>(std::ceil(x - 1e-7)); }

inline uint32_t threshold_of(const Floats& x, const Shares& shares, uint64_t seed, uint64_t first) {
  const size_t n = x.size();
  const size_t asked =
      std::max({ceil_of(static_cast<double>(n) * shares.sample), ceil_of(8 / shares.ratio)});
  const size_t runs = (asked + 15) / 16, groups = n / 16;
  std::vector<uint32_t> sample;
  for (size_t j = 0; j < runs && runs < groups; ++j) {
    const size_t b = j * groups / runs, e = (j + 1) * groups / runs;
    const uint64_t h = random_bits(seed, first + 16 * b);
    for (size_t i = 0; i < 16; ++i)
      sample.push_back(magnitude(x[16 * (b + (h * (e - b) >> 32)) + i]));
  }
  for (size_t i = 0; i < n && runs >= groups; ++i) sample.push_back(magnitude(x[i]));
  const size_t rank = ceil_of(static_cast<double>(sample.size()) * shares.ratio);
  std::sort(sample.begin(), sample.end(), std::greater<>());
  return std::min(sample.empty() ? 0 : sample[std::max<size_t>(rank, 1) - 1], kInfinity);
}

// Every kernel sends the values that largest(x, most(n, shares), threshold) names.
template <typename Most>
void follows_its_rule(const char* codec, Most most) {
  const Shares kinds[] = {{"0.001", 0.001, "0.01", 0.01},
                          {"0.05", 0.05, "1e-9", 1e-9},
                          {"0.05", 0.05, "0.3", 0.3},
                          {"0.6", 0.6, "0.1", 0.1},
                          {"1", 1, "1", 1}};
  for (const Shares& shares : kinds) {
    for (Coder& coder : coders(codec, {shares.ratio_text, shares.sample_text})) {
      for (const size_t n : {0, 1, 16, 31, 333, 4096, 9001}) {
        for (const Floats& x : hard_blocks(n)) {
          coder.args().seed = n * 0x123456789;
          coder.args().first = n << 30;
          const uint32_t threshold = threshold_of(x, shares, coder.args().seed, coder.args().first);
          const Floats expected = masked(x, largest(x, most(n, shares), threshold));
          const Data code = coder.encode(x);
          ASSERT_TRUE(same_bits(coder.decode(code, n), expected))
              << coder.variant() << " " << shares.ratio_text << " of " << n;
          ASSERT_EQ(coder.encode(expected), code);
        }
      }
    }
  }
}

inline void the_seed_changes_the_sample(const char* codec) {
  constexpr size_t kN = 131072;
  const Floats x = gradient(kN, 1);
  Coder coder = std::move(coders(codec).front());
  const Data first = coder.encode(x);
  EXPECT_EQ(coder.encode(x), first);
  coder.args().seed = 1;
  EXPECT_NE(coder.encode(x), first);
  coder.args() = {.dtype = DType::kFloat32, .value = coder.args().value, .first = kN};
  EXPECT_NE(coder.encode(x), first);
}

// Values that 50 gradients send at 0.001 of 131,072, on average.
inline double sent_of_a_thousandth(const char* codec, ptrdiff_t fewest, ptrdiff_t most) {
  constexpr size_t kN = 131072;
  constexpr unsigned kTimes = 50;
  Coder coder = std::move(coders(codec, {"0.001"}).front());
  double sum = 0;
  for (unsigned seed = 0; seed < kTimes; ++seed) {
    coder.args().seed = seed;
    const Floats sent = coder.decode(coder.encode(gradient(kN, seed)), kN);
    const auto count = std::count_if(sent.begin(), sent.end(), [](float x) { return x != 0; });
    EXPECT_GE(count, fewest);
    EXPECT_LE(count, most);
    sum += static_cast<double>(count);
  }
  return sum / kTimes;
}

}  // namespace wirepress::sparse
