// SPDX-License-Identifier: Apache-2.0
// The bound of spec.md in doubles, and what its decoder must refuse.
#include <limits>

#include "base/float_codec_testing.hpp"

namespace wirepress {
namespace {

constexpr int kLevels = 7;

std::vector<float> gradients(size_t n, double size, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(n);
  for (float& x : values) x = random.next() % 5 < 2 ? 0.0f : random.gradient(size);
  return values;
}

double largest(const float* x, size_t n) {
  double m = 0;
  for (size_t i = 0; i < n; ++i) m = std::max(m, std::fabs(static_cast<double>(x[i])));
  return m;
}

void check_bound(const std::vector<float>& x, const std::vector<float>& y, size_t block,
                 bool stochastic) {
  for (size_t begin = 0; begin < x.size(); begin += block) {
    const size_t end = std::min(x.size(), begin + block);
    const double m = largest(x.data() + begin, end - begin);
    const double scale = m / kLevels * (1 + 0x1p-15);
    for (size_t i = begin; i < end; ++i) {
      const double error = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      if (m < 0x1p-100)
        ASSERT_EQ(as_word(y[i]), 0u);
      else
        ASSERT_LE(error, stochastic ? scale : scale * (0.5 + 0x1p-14)) << x[i] << " of " << m;
    }
  }
}

TEST(Int4, KeepsItsBound) {
  for (int block = 7; block <= 12; ++block) {
    for (const int round : {0, 1}) {
      const FloatCodec codec("int4", {block, round}, 42, (uint64_t{1} << 32) - 5000);
      for (const double size : {1e-45, 1e-39, 1e-31, 7.9e-31, 1e-20, 1e-3, 1.0, 3e10, 1.7e38}) {
        const std::vector<float> x = gradients(10001, size, static_cast<uint64_t>(block));
        const std::vector<float> y = codec.pass(x);
        check_bound(x, y, size_t{1} << block, round == 1);
        ASSERT_EQ(codec.pass(y), y) << "not the same twice";
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Every size of the largest value: exponents, and fractions around those where a scale changes.
TEST(Int4, EveryLargestValue) {
  const FloatCodec codec("int4", {7, 0});
  std::vector<float> x;
  for (uint32_t word = 0; word < 0x7F800000; word += 0x1FFFF) {
    TestRandom random(word);
    x.push_back(-as_float(word));
    for (int i = 1; i < 128; ++i) x.push_back(static_cast<float>(random.unit()) * as_float(word));
  }
  for (int i = 0; i < 128; ++i) x.push_back(std::numeric_limits<float>::max());
  const std::vector<float> y = codec.pass(x);
  check_bound(x, y, 128, false);
  EXPECT_EQ(codec.pass(y), y) << "not the same twice";
  for (const float value : y) ASSERT_TRUE(std::isfinite(value));
}

TEST(Int4, StochasticRoundingIsRightOnAverage) {
  std::vector<float> x(1 << 18, 0.0137f);
  for (size_t i = 0; i < x.size(); i += 256) x[i] = 1;
  double sum = 0;
  for (const float y : FloatCodec("int4", {8, 1}, 5).pass(x)) sum += y < 0.9f ? y : 0;
  const double n = static_cast<double>(x.size()) * 255 / 256;
  EXPECT_NEAR(sum / n, 0.0137, (0x1p-9 + 5 / std::sqrt(n)) / kLevels);
}

TEST(Int4, ABlockThatIsNotFiniteIsNan) {
  const FloatCodec codec("int4", {7, 0});
  for (const uint32_t bad : {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFF800001u}) {
    const uint32_t whole = as_word(kLevels);  // with scale 1
    Words words(400, whole);
    words[130] = bad;
    const Words decoded = codec.pass(words);
    for (size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(decoded[i], i / 128 == 1 ? 0x7FC00000u : whole) << i;
  }
}

TEST(Int4, ZerosArePositive) {
  const Words decoded =
      FloatCodec("int4", {7, 0}).pass(Words{0x80000000, as_word(-kLevels), 0x80000001});
  EXPECT_EQ(decoded, (Words{0, as_word(-kLevels), 0}));
  EXPECT_EQ(FloatCodec("int4", {7, 0}).pass(Words{0x80000000}), Words{0});
}

Code decode(std::vector<uint8_t> code, size_t values) {
  Words out(values);
  const FloatCodec codec("int4", {7, 0});
  return codec.decode(std::as_bytes(std::span(code)), std::as_writable_bytes(std::span(out)));
}

TEST(Int4, RefusesWhatNoEncoderWrites) {
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x97}, 2), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x87}, 2), Code::kCorrupt);  // -8
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x18}, 2), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x07}, 1), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x17}, 1), Code::kCorrupt);  // beyond the values
  EXPECT_EQ(decode({0x01, 0x6E, 0xDB, 0x3E, 0x97}, 2), Code::kCorrupt);  // a lower bit
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0xBE, 0x97}, 2), Code::kCorrupt);  // negative
  EXPECT_EQ(decode({0x00, 0x49, 0x12, 0x7E, 0x97}, 2), Code::kOk);       // the largest scale
  EXPECT_EQ(decode({0x80, 0x49, 0x12, 0x7E, 0x97}, 2), Code::kCorrupt);
  EXPECT_EQ(decode({0x80, 0x49, 0x12, 0x0C, 0x97}, 2), Code::kOk);  // the smallest
  EXPECT_EQ(decode({0x00, 0x49, 0x12, 0x0C, 0x97}, 2), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x00, 0x00, 0x00, 0x00}, 2), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x00, 0x00, 0x00, 0x10}, 2), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x00, 0xC0, 0x7F, 0x00}, 2), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x00, 0xC0, 0x7F, 0x10}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({}, 0), Code::kOk);
  EXPECT_EQ(decode({0}, 0), Code::kCorrupt);
}

TEST(Int4, TheExampleOfTheSpecification) {
  std::vector<std::byte> raw(21, std::byte{7});
  const float values[] = {1.0f, -3.0f, 0.1f, 0.0f, 2.0f};
  std::memcpy(raw.data(), values, sizeof(values));
  const uint8_t expected[] = {0x00, 0x6E, 0xDB, 0x3E, 0x92, 0x00, 0x05, 0x07};
  const ConstBytes code = std::as_bytes(std::span(expected));
  EXPECT_EQ(FloatCodec("int4", {9, 0}).encode(raw), Code8(code.begin(), code.end()));
}

}  // namespace
}  // namespace wirepress
