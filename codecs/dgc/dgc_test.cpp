// SPDX-License-Identifier: Apache-2.0
// dgc sends what spec.md says, computed again in the plainest way.
#include "codecs/common/random.hpp"
#include "codecs/common/testing/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Shares {
  const char* ratio_text;
  double ratio;
  const char* sample_text;
  double sample;
};

size_t ceil_of(double x) { return static_cast<size_t>(std::ceil(x - 1e-7)); }

uint32_t threshold_of(const Floats& x, const Shares& shares, uint64_t seed, uint64_t first) {
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

TEST(Dgc, FollowsItsRule) {
  const Shares kinds[] = {{"0.001", 0.001, "0.01", 0.01},
                          {"0.05", 0.05, "1e-9", 1e-9},
                          {"0.05", 0.05, "0.3", 0.3},
                          {"0.6", 0.6, "0.1", 0.1},
                          {"1", 1, "1", 1}};
  for (const Shares& shares : kinds) {
    for (Coder& coder : coders("dgc", {shares.ratio_text, shares.sample_text})) {
      for (const size_t n : {0, 1, 16, 31, 333, 4096, 9001}) {
        for (const Floats& x : hard_blocks(n)) {
          coder.args().seed = n * 0x123456789;
          coder.args().first = n << 30;
          const uint32_t threshold = threshold_of(x, shares, coder.args().seed, coder.args().first);
          const size_t k = ceil_of(static_cast<double>(n) * shares.ratio);
          const Floats expected = masked(x, largest(x, k, threshold));
          const Data code = coder.encode(x);
          ASSERT_TRUE(same_bits(coder.decode(code, n), expected))
              << coder.variant() << " " << shares.ratio_text << " of " << n;
          ASSERT_EQ(coder.encode(expected), code);
        }
      }
    }
  }
}

TEST(Dgc, TheSeedChangesTheSample) {
  constexpr size_t kN = 131072;
  const Floats x = gradient(kN, 1);
  Coder coder = std::move(coders("dgc").front());
  const Data first = coder.encode(x);
  EXPECT_EQ(coder.encode(x), first);
  coder.args().seed = 1;
  EXPECT_NE(coder.encode(x), first);
  coder.args() = {.dtype = DType::kFloat32, .value = coder.args().value, .first = kN};
  EXPECT_NE(coder.encode(x), first);
}

TEST(Dgc, SendsAtMostItsShare) {
  constexpr size_t kN = 131072;
  Coder coder = std::move(coders("dgc", {"0.001"}).front());
  double sum = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    coder.args().seed = seed;
    const Floats sent = coder.decode(coder.encode(gradient(kN, seed)), kN);
    const auto count = std::count_if(sent.begin(), sent.end(), [](float x) { return x != 0; });
    EXPECT_GE(count, 20);
    EXPECT_LE(count, 132);
    sum += static_cast<double>(count);
  }
  EXPECT_NEAR(sum / 50, 113, 20);
}

}  // namespace
}  // namespace wirepress::sparse
