// SPDX-License-Identifier: Apache-2.0
// Tests of codecs of blocks of integers with a scale: the bound of their spec.md in doubles.
#pragma once

#include <limits>
#include <utility>

#include "codecs/common/testing/float_codec.hpp"

namespace wirepress {
namespace {

inline std::vector<float> gradients(size_t n, double size, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(n);
  for (float& x : values) x = random.next() % 5 < 2 ? 0.0f : random.gradient(size);
  return values;
}

inline double largest(const float* x, size_t n) {
  double m = 0;
  for (size_t i = 0; i < n; ++i) m = std::max(m, std::fabs(static_cast<double>(x[i])));
  return m;
}

inline void check_bound(const std::vector<float>& x, const std::vector<float>& y, int levels,
                        size_t block, bool stochastic) {
  for (size_t begin = 0; begin < x.size(); begin += block) {
    const size_t end = std::min(x.size(), begin + block);
    const double m = largest(x.data() + begin, end - begin);
    const double scale = m / levels * (1 + 0x1p-15);
    for (size_t i = begin; i < end; ++i) {
      const double error = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      if (m < 0x1p-100)
        ASSERT_EQ(as_word(y[i]), 0u);
      else
        ASSERT_LE(error, stochastic ? scale : scale * (0.5 + 0x1p-14)) << x[i] << " of " << m;
    }
  }
}

// Case: kName, kLevels (the largest integer).
template <typename Case>
class BlockQuantiser : public testing::Test {};
TYPED_TEST_SUITE_P(BlockQuantiser);

TYPED_TEST_P(BlockQuantiser, KeepsItsBound) {
  for (int block = 7; block <= 12; ++block) {
    for (const int round : {0, 1}) {
      const FloatCodec codec(TypeParam::kName, {block, round}, 42, (uint64_t{1} << 32) - 5000);
      for (const double size : {1e-45, 1e-39, 1e-31, 7.9e-31, 1e-20, 1e-3, 1.0, 3e10, 1.7e38}) {
        const std::vector<float> x = gradients(10001, size, static_cast<uint64_t>(block));
        const std::vector<float> y = codec.pass(x);
        check_bound(x, y, TypeParam::kLevels, size_t{1} << block, round == 1);
        ASSERT_EQ(codec.pass(y), y) << "not the same twice";
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

// Every size of the largest value: exponents, and fractions around those where a scale changes.
TYPED_TEST_P(BlockQuantiser, EveryLargestValue) {
  const FloatCodec codec(TypeParam::kName, {7, 0});
  std::vector<float> x;
  for (uint32_t word = 0; word < 0x7F800000; word += 0x1FFFF) {
    TestRandom random(word);
    x.push_back(-as_float(word));
    for (int i = 1; i < 128; ++i) x.push_back(static_cast<float>(random.unit()) * as_float(word));
  }
  for (int i = 0; i < 128; ++i) x.push_back(std::numeric_limits<float>::max());
  const std::vector<float> y = codec.pass(x);
  check_bound(x, y, TypeParam::kLevels, 128, false);
  EXPECT_EQ(codec.pass(y), y) << "not the same twice";
  for (const float value : y) ASSERT_TRUE(std::isfinite(value));
}

TYPED_TEST_P(BlockQuantiser, StochasticRoundingIsRightOnAverage) {
  std::vector<float> x(1 << 18, 0.0137f);
  for (size_t i = 0; i < x.size(); i += 256) x[i] = 1;
  double sum = 0;
  for (const float y : FloatCodec(TypeParam::kName, {8, 1}, 5).pass(x)) sum += y < 0.9f ? y : 0;
  const double n = static_cast<double>(x.size()) * 255 / 256;
  EXPECT_NEAR(sum / n, 0.0137, (0x1p-9 + 5 / std::sqrt(n)) / TypeParam::kLevels);
}

TYPED_TEST_P(BlockQuantiser, ABlockThatIsNotFiniteIsNan) {
  const FloatCodec codec(TypeParam::kName, {7, 0});
  for (const uint32_t bad : {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFF800001u}) {
    const uint32_t whole = as_word(TypeParam::kLevels);  // with scale 1
    Words words(400, whole);
    words[130] = bad;
    const Words decoded = codec.pass(words);
    for (size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(decoded[i], i / 128 == 1 ? 0x7FC00000u : whole) << i;
  }
}

TYPED_TEST_P(BlockQuantiser, ZerosArePositive) {
  const Words decoded = FloatCodec(TypeParam::kName, {7, 0})
                            .pass(Words{0x80000000, as_word(-TypeParam::kLevels), 0x80000001});
  EXPECT_EQ(decoded, (Words{0, as_word(-TypeParam::kLevels), 0}));
  EXPECT_EQ(FloatCodec(TypeParam::kName, {7, 0}).pass(Words{0x80000000}), Words{0});
}

REGISTER_TYPED_TEST_SUITE_P(BlockQuantiser, KeepsItsBound, EveryLargestValue,
                            StochasticRoundingIsRightOnAverage, ABlockThatIsNotFiniteIsNan,
                            ZerosArePositive);

// What a codec with blocks of 128 values says of this code.
inline Code decode_blocks(const char* name, std::vector<uint8_t> code, size_t values) {
  Words out(values);
  const FloatCodec codec(name, {7, 0});
  return codec.decode(std::as_bytes(std::span(code)), std::as_writable_bytes(std::span(out)));
}

}  // namespace
}  // namespace wirepress
