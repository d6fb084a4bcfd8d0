// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/testing/half_codec.hpp"

namespace wirepress {
namespace {

struct Fp16Case {
  static constexpr const char* kName = "fp16";
  static constexpr HalfKind kKind = {10, -14, 0x1p16};
  static constexpr uint32_t kLargest = 0x477FE000;
  static constexpr const char* kAll = "WPR_FP16_ALL";
};
INSTANTIATE_TYPED_TEST_SUITE_P(Fp16, HalfCodec, Fp16Case);

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
