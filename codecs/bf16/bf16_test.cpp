// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/testing/half_codec.hpp"

namespace wirepress {
namespace {

struct Bf16Case {
  static constexpr const char* kName = "bf16";
  static constexpr HalfKind kKind = {7, -126, 0x1p128};
  static constexpr uint32_t kLargest = 0x7F7F0000;
  static constexpr const char* kAll = "WPR_BF16_ALL";
};
INSTANTIATE_TYPED_TEST_SUITE_P(Bf16, HalfCodec, Bf16Case);

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
