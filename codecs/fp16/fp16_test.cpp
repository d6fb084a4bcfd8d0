// SPDX-License-Identifier: Apache-2.0
// Value by value against arithmetic in doubles. By default over a sample of all 2^32 words that
// holds every exponent and both signs; with WPR_FP16_ALL=1 over all of them (minutes).
#include "base/float_codec_testing.hpp"

namespace wirepress {
namespace {

constexpr HalfKind kKind = {10, -14, 0x1p16};
constexpr uint32_t kLargest = 0x477FE000;
constexpr const char* kAll = "WPR_FP16_ALL";

TEST(Fp16, RoundsToNearestEvenWhateverTheWord) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec("fp16", {0, saturate});
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
TEST(Fp16, RoundsStochasticallyToNeighbours) {
  for (const bool saturate : {false, true}) {
    const FloatCodec codec("fp16", {1, saturate}, 0x123456789ABCDEF0, 5);
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

TEST(Fp16, StochasticRoundingIsRightOnAverage) {
  for (const float x : {1.0023f, -0.33421f, 3.3e-5f, 1.7e-7f}) {
    const std::vector<float> values(200000, x);
    double sum = 0;
    for (const float y : FloatCodec("fp16", {1, 0}, 77, 1000).pass(values)) sum += y;
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, x, 5 * quantum(kKind, x) / std::sqrt(n)) << x;
  }
}

// Indices are 64 bits: vectors that lie across a multiple of 2^32, and pieces of an array.
TEST(Fp16, DrawsByElement) {
  Words words(9000);
  TestRandom random(3);
  for (uint32_t& word : words) word = as_word(random.gradient(1));
  const uint64_t first = (uint64_t{7} << 32) - 4099;
  const Code8 whole = FloatCodec("fp16", {1, 0}, 9, first).encode(words);
  constexpr size_t kCut = 4133;
  Code8 parts =
      FloatCodec("fp16", {1, 0}, 9, first).encode(Words(words.begin(), words.begin() + kCut));
  const Code8 rest =
      FloatCodec("fp16", {1, 0}, 9, first + kCut).encode(Words(words.begin() + kCut, words.end()));
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
  EXPECT_NE(FloatCodec("fp16", {1, 0}, 10, first).encode(words), whole);
}

TEST(Fp16, TheExampleOfTheSpecification) {
  std::vector<std::byte> raw(25, std::byte{7});
  const float values[] = {1.0f,  -2.001953125f, 1.00048828125f,
                          1e-7f, 70000.0f,      as_float(0xFFABCDEF)};
  std::memcpy(raw.data(), values, sizeof(values));
  const uint8_t expected[] = {0x00, 0x3C, 0x01, 0xC0, 0x00, 0x3C, 0x02,
                              0x00, 0x00, 0x7C, 0x00, 0x7E, 0x07};
  const ConstBytes code = std::as_bytes(std::span(expected));
  EXPECT_EQ(FloatCodec("fp16", {0, 0}).encode(raw), Code8(code.begin(), code.end()));
}

// A NaN that another encoder may have written is made quiet, as processors do.
TEST(Fp16, DecodesEveryCode) {
  std::vector<uint16_t> codes(1 << 16);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  Words decoded(codes.size());
  ASSERT_EQ(
      FloatCodec("fp16", {0, 0})
          .decode(std::as_bytes(std::span(codes)), std::as_writable_bytes(std::span(decoded))),
      Code::kOk);
  for (uint32_t i = 0; i < codes.size(); ++i) {
    const uint32_t sign = (i & 0x8000) << 16;
    const uint32_t e = i >> 10 & 31, f = i & 1023;
    const double size =
        e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, static_cast<int>(e) - 25);
    uint32_t expected = as_word(static_cast<float>(size));
    if (e == 31) expected = 0x7F800000 | f << 13 | (f > 0 ? 1u << 22 : 0);
    ASSERT_EQ(decoded[i], sign | expected) << std::hex << i;
  }
}

}  // namespace
}  // namespace wirepress
