// SPDX-License-Identifier: Apache-2.0
// Value by value against arithmetic in doubles. By default over a sample of all 2^32 words that
// holds every exponent and both signs; with WPR_BF16_ALL=1 over all of them (minutes).
#include "base/float_codec_testing.hpp"

namespace wirepress {
namespace {

constexpr HalfKind kKind = {7, -126, 0x1p128};
constexpr uint32_t kLargest = 0x7F7F0000;
constexpr const char* kAll = "WPR_BF16_ALL";

TEST(Bf16, RoundsToNearestEvenWhateverTheWord) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec("bf16", {0, saturate});
    for_words(kAll, [&](const Words& words) {
      const Words decoded = codec.pass(words);
      for (size_t i = 0; i < words.size(); ++i) {
        const float x = as_float(words[i]);
        uint32_t expected = as_word(static_cast<float>(nearest(kKind, x)));
        if (std::isnan(x)) expected = 0x7FC00000;
        if (saturate && std::isfinite(x) && (expected & 0x7FFFFFFF) > kLargest)
          expected = kLargest | (words[i] & 0x80000000);
        ASSERT_EQ(decoded[i], expected) << std::hex << words[i];
      }
      ASSERT_EQ(codec.pass(decoded), decoded) << "not the same twice";
    });
  }
}

// The law of spec.md: one of the two neighbours, or the value itself.
TEST(Bf16, RoundsStochasticallyToNeighbours) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec("bf16", {1, saturate}, 0x123456789ABCDEF0, 5);
    for_words(kAll, [&](const Words& words) {
      const Words decoded = codec.pass(words);
      for (size_t i = 0; i < words.size(); ++i) {
        const double x = as_float(words[i]);
        const double y = as_float(decoded[i]);
        if (std::isnan(x)) {
          ASSERT_EQ(decoded[i], 0x7FC00000u);
          continue;
        }
        ASSERT_EQ(decoded[i] >> 31, words[i] >> 31) << std::hex << words[i];
        const double unit = quantum(kKind, x);
        if (std::isinf(x)) {
          ASSERT_EQ(decoded[i], words[i]);
        } else if (std::fabs(x) > as_float(kLargest)) {
          ASSERT_TRUE(std::fabs(y) == as_float(kLargest) || (!saturate && std::isinf(y))) << x;
        } else {
          ASSERT_LT(std::fabs(x - y), unit) << std::hex << words[i];
        }
      }
      ASSERT_EQ(codec.pass(decoded), decoded) << "not the same twice";
    });
  }
}

TEST(Bf16, StochasticRoundingIsRightOnAverage) {
  for (const float x : {1.0023f, -0.33421f, 3.3e-5f, 1.7e-7f}) {
    const std::vector<float> values(200000, x);
    double sum = 0;
    for (const float y : FloatCodec("bf16", {1, 0}, 77, 1000).pass(values)) sum += y;
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, x, 5 * quantum(kKind, x) / std::sqrt(n)) << x;
  }
}

// Indices are 64 bits: vectors that lie across a multiple of 2^32, and pieces of an array.
TEST(Bf16, DrawsByElement) {
  Words words(9000);
  TestRandom random(3);
  for (uint32_t& word : words) word = as_word(random.gradient(1));
  const uint64_t first = (uint64_t{7} << 32) - 4099;
  const Code8 whole = FloatCodec("bf16", {1, 0}, 9, first).encode(words);
  constexpr size_t kCut = 4133;
  Code8 parts =
      FloatCodec("bf16", {1, 0}, 9, first).encode(Words(words.begin(), words.begin() + kCut));
  const Code8 rest =
      FloatCodec("bf16", {1, 0}, 9, first + kCut).encode(Words(words.begin() + kCut, words.end()));
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
  EXPECT_NE(FloatCodec("bf16", {1, 0}, 10, first).encode(words), whole);
}

TEST(Bf16, TheExampleOfTheSpecification) {
  std::vector<std::byte> raw(21, std::byte{7});
  const float values[] = {1.0f, -2.00390625f, 1.00390625f, 100.3f, as_float(0xFFABCDEF)};
  std::memcpy(raw.data(), values, sizeof(values));
  const uint8_t expected[] = {0x80, 0x3F, 0x00, 0xC0, 0x80, 0x3F, 0xC9, 0x42, 0xC0, 0x7F, 0x07};
  const ConstBytes code = std::as_bytes(std::span(expected));
  EXPECT_EQ(FloatCodec("bf16", {0, 0}).encode(raw), Code8(code.begin(), code.end()));
}

}  // namespace
}  // namespace wirepress
