// SPDX-License-Identifier: Apache-2.0
// The values of both formats from their definition, the nearest of them by search, and the bound of
// spec.md in doubles.
#include <limits>

#include "codecs/common/testing/float_codec.hpp"

namespace wirepress {
namespace {

struct Kind {
  int param;
  int fraction;
  int bias;
  int top;
  int most_scale;
};
constexpr Kind kKinds[] = {{0, 3, 7, 0x7E, 119}, {1, 2, 15, 0x7B, 112}};
constexpr int kLeastScale = -108;

double value(const Kind& kind, int code) {
  const int e = (code & 0x7F) >> kind.fraction;
  const int f = code & ((1 << kind.fraction) - 1);
  const int units = f + (e > 0 ? 1 << kind.fraction : 0);
  return std::ldexp(units, std::max(e, 1) - kind.bias - kind.fraction) * (code & 0x80 ? -1 : 1);
}

// The code of y: the nearest value, the even one of two.
int nearest_code(const Kind& kind, double y) {
  int best = 0;
  for (int code = 0; code <= kind.top; ++code) {
    const double now = std::fabs(value(kind, code) - std::fabs(y));
    const double then = std::fabs(value(kind, best) - std::fabs(y));
    if (now < then || (now == then && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(y) ? 0x80 : 0);
}

int scale_of(const Kind& kind, double m) {
  for (int k = kLeastScale; k < kind.most_scale; ++k)
    if (m <= std::ldexp(value(kind, kind.top), k)) return k;
  return kind.most_scale;
}

void check_chunk(const Kind& kind, const std::vector<float>& x) {
  const FloatCodec codec("fp8", {kind.param});
  const Code8 code = codec.encode(x);
  double m = 0;
  for (const float value : x) m = std::max(m, std::fabs(static_cast<double>(value)));
  const int k = scale_of(kind, m);
  ASSERT_EQ(static_cast<int>(code[0]), k + 127) << m;
  const std::vector<float> y = codec.pass(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const int expected = nearest_code(kind, std::ldexp(static_cast<double>(x[i]), -k));
    ASSERT_EQ(static_cast<int>(code[1 + i]), expected) << x[i] << " of " << m;
    ASSERT_EQ(as_word(y[i]), as_word(static_cast<float>(std::ldexp(value(kind, expected), k))));
    const double size = std::fabs(static_cast<double>(x[i]));
    if (size > 0x1.Cp127) continue;
    const double error = std::fabs(static_cast<double>(y[i]) - static_cast<double>(x[i]));
    ASSERT_LE(error, std::max(std::ldexp(size, -kind.fraction - 1),
                              std::ldexp(1.0, k - kind.bias - kind.fraction)));
  }
  ASSERT_EQ(codec.pass(y), y) << "not the same twice";
}

TEST(Fp8, RoundsToTheNearestValue) {
  for (const Kind& kind : kKinds) {
    // Every code, the middles between two, and their neighbours.
    std::vector<float> x;
    for (int code = 0; code < kind.top; ++code) {
      const double middle = (value(kind, code) + value(kind, code + 1)) / 2;
      for (const double y : {value(kind, code), middle}) {
        x.push_back(static_cast<float>(y));
        x.push_back(-std::nextafterf(x.back(), 0));
        x.push_back(std::nextafterf(-x.back(), 1e30f));
      }
    }
    x.push_back(static_cast<float>(value(kind, kind.top)));
    ASSERT_LT(x.size(), 4096u);
    check_chunk(kind, x);
    for (float& v : x) v *= 0x1p-90f;
    check_chunk(kind, x);
    // With scales of all sizes, at the ends of their range too.
    for (int e = -160; e <= 126; e += 3) {
      TestRandom random(static_cast<uint64_t>(e + 200));
      x.resize(501);
      for (float& v : x) v = random.gradient(std::ldexp(1.0, e));
      x[7] = -0.0f;
      check_chunk(kind, x);
      if (HasFatalFailure()) return;
    }
    x[3] = std::numeric_limits<float>::max();
    check_chunk(kind, x);
    x[3] = -0x1.Cp127f;
    check_chunk(kind, x);
    check_chunk(kind, {0.0f, -0.0f, 1e-45f, -1e-40f});
    for (const float m : {448.0f, 448.00003f, 464.0f, 480.0f, 511.99997f, 512.0f})
      check_chunk(kind, {m, 1.0f, -0.3f});
  }
}

TEST(Fp8, AChunkThatIsNotFiniteIsNan) {
  for (const uint32_t bad : {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFF800001u}) {
    Words words(9000, 0x3F800000);
    words[4096] = bad;
    const Words decoded = FloatCodec("fp8", {0}).pass(words);
    for (size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(decoded[i], i / 4096 == 1 ? 0x7FC00000u : 0x3F800000u) << i;
  }
}

Code decode(int format, std::vector<uint8_t> code, size_t values) {
  Words out(values);
  const FloatCodec codec("fp8", {format});
  return codec.decode(std::as_bytes(std::span(code)), std::as_writable_bytes(std::span(out)));
}

TEST(Fp8, RefusesWhatNoEncoderWrites) {
  for (const Kind& kind : kKinds) {
    const auto scale = [](int k) { return static_cast<uint8_t>(k + 127); };
    for (int code = 0; code < 256; ++code) {
      const bool good = (code & 0x7F) <= kind.top;
      EXPECT_EQ(decode(kind.param, {scale(0), static_cast<uint8_t>(code)}, 1) == Code::kOk, good);
    }
    EXPECT_EQ(decode(kind.param, {scale(kLeastScale), 1}, 1), Code::kOk);
    EXPECT_EQ(decode(kind.param, {scale(kLeastScale - 1), 1}, 1), Code::kCorrupt);
    EXPECT_EQ(decode(kind.param, {scale(kind.most_scale), 1}, 1), Code::kOk);
    EXPECT_EQ(decode(kind.param, {scale(kind.most_scale + 1), 1}, 1), Code::kCorrupt);
    EXPECT_EQ(decode(kind.param, {255, 0}, 1), Code::kOk);
    EXPECT_EQ(decode(kind.param, {255, 1}, 1), Code::kCorrupt);
    EXPECT_EQ(decode(kind.param, {}, 0), Code::kOk);
    EXPECT_EQ(decode(kind.param, {0}, 0), Code::kCorrupt);
  }
}

TEST(Fp8, TheExampleOfTheSpecification) {
  std::vector<std::byte> raw(21, std::byte{7});
  const float values[] = {1.0f, -3.0f, 0.1f, 0.0f, 1e-3f};
  std::memcpy(raw.data(), values, sizeof(values));
  const uint8_t expected[] = {0x78, 0x70, 0xFC, 0x55, 0x00, 0x20, 0x07};
  const ConstBytes code = std::as_bytes(std::span(expected));
  EXPECT_EQ(FloatCodec("fp8", {0}).encode(raw), Code8(code.begin(), code.end()));
}

}  // namespace
}  // namespace wirepress
