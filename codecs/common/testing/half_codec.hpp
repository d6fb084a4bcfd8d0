// SPDX-License-Identifier: Apache-2.0
// Tests of codecs of two-byte floats: value by value against arithmetic in doubles, by default over
// a sample of all 2^32 words that holds every exponent and both signs; with the environment
// variable kAll over all of them (minutes).
#pragma once

#include "codecs/common/testing/float_codec.hpp"

namespace wirepress {
namespace {

// Case: kName, kKind (HalfKind), kLargest (word of the largest finite value), kAll.
template <typename Case>
class HalfCodec : public testing::Test {};
TYPED_TEST_SUITE_P(HalfCodec);

TYPED_TEST_P(HalfCodec, RoundsToNearestEvenWhateverTheWord) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec(TypeParam::kName, {0, saturate});
    for_words(TypeParam::kAll, [&](const Words& words) {
      const Words decoded = codec.pass(words);
      for (size_t i = 0; i < words.size(); ++i) {
        const float x = as_float(words[i]);
        uint32_t expected = as_word(static_cast<float>(nearest(TypeParam::kKind, x)));
        if (std::isnan(x)) expected = 0x7FC00000;
        if (saturate && std::isfinite(x) && (expected & 0x7FFFFFFF) > TypeParam::kLargest)
          expected = TypeParam::kLargest | (words[i] & 0x80000000);
        ASSERT_EQ(decoded[i], expected) << std::hex << words[i];
      }
      ASSERT_EQ(codec.pass(decoded), decoded) << "not the same twice";
    });
  }
}

// The law of spec.md: one of the two neighbours, or the value itself.
TYPED_TEST_P(HalfCodec, RoundsStochasticallyToNeighbours) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec(TypeParam::kName, {1, saturate}, 0x123456789ABCDEF0, 5);
    for_words(TypeParam::kAll, [&](const Words& words) {
      const Words decoded = codec.pass(words);
      for (size_t i = 0; i < words.size(); ++i) {
        const double x = as_float(words[i]);
        const double y = as_float(decoded[i]);
        if (std::isnan(x)) {
          ASSERT_EQ(decoded[i], 0x7FC00000u);
          continue;
        }
        ASSERT_EQ(decoded[i] >> 31, words[i] >> 31) << std::hex << words[i];
        const double unit = quantum(TypeParam::kKind, x);
        if (std::isinf(x)) {
          ASSERT_EQ(decoded[i], words[i]);
        } else if (std::fabs(x) > as_float(TypeParam::kLargest)) {
          ASSERT_TRUE(std::fabs(y) == as_float(TypeParam::kLargest) || (!saturate && std::isinf(y)))
              << x;
        } else {
          ASSERT_LT(std::fabs(x - y), unit) << std::hex << words[i];
        }
      }
      ASSERT_EQ(codec.pass(decoded), decoded) << "not the same twice";
    });
  }
}

TYPED_TEST_P(HalfCodec, StochasticRoundingIsRightOnAverage) {
  for (const float x : {1.0023f, -0.33421f, 3.3e-5f, 1.7e-7f}) {
    const std::vector<float> values(200000, x);
    double sum = 0;
    for (const float y : FloatCodec(TypeParam::kName, {1, 0}, 77, 1000).pass(values)) sum += y;
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, x, 5 * quantum(TypeParam::kKind, x) / std::sqrt(n)) << x;
  }
}

// Indices are 64 bits: vectors that lie across a multiple of 2^32, and pieces of an array.
TYPED_TEST_P(HalfCodec, DrawsByElement) {
  Words words(9000);
  TestRandom random(3);
  for (uint32_t& word : words) word = as_word(random.gradient(1));
  const uint64_t first = (uint64_t{7} << 32) - 4099;
  const Code8 whole = FloatCodec(TypeParam::kName, {1, 0}, 9, first).encode(words);
  constexpr size_t kCut = 4133;
  Code8 parts = FloatCodec(TypeParam::kName, {1, 0}, 9, first)
                    .encode(Words(words.begin(), words.begin() + kCut));
  const Code8 rest = FloatCodec(TypeParam::kName, {1, 0}, 9, first + kCut)
                         .encode(Words(words.begin() + kCut, words.end()));
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
  EXPECT_NE(FloatCodec(TypeParam::kName, {1, 0}, 10, first).encode(words), whole);
}

REGISTER_TYPED_TEST_SUITE_P(HalfCodec, RoundsToNearestEvenWhateverTheWord,
                            RoundsStochasticallyToNeighbours, StochasticRoundingIsRightOnAverage,
                            DrawsByElement);

}  // namespace
}  // namespace wirepress
