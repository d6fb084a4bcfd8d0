// SPDX-License-Identifier: Apache-2.0
// What the decoder must refuse, beside the tests of all codecs of its kind.
#include "codecs/common/testing/block_quantiser.hpp"

namespace wirepress {
namespace {

struct Int8Case {
  static constexpr const char* kName = "int8";
  static constexpr int kLevels = 127;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Int8, BlockQuantiser, Int8Case);

Code decode(std::vector<uint8_t> code, size_t values) {
  return decode_blocks(Int8Case::kName, std::move(code), values);
}

TEST(Int8, RefusesWhatNoEncoderWrites) {
  EXPECT_EQ(decode({0x80, 0x83, 0xC1, 0x3C, 0x81}, 1), Code::kOk);
  EXPECT_EQ(decode({0x80, 0x83, 0xC1, 0x3C, 0x80}, 1), Code::kCorrupt);  // -128
  EXPECT_EQ(decode({0x81, 0x83, 0xC1, 0x3C, 0x81}, 1),
            Code::kCorrupt);                                             // a lower bit
  EXPECT_EQ(decode({0x80, 0x83, 0xC1, 0xBC, 0x81}, 1), Code::kCorrupt);  // negative
  EXPECT_EQ(decode({0x00, 0x02, 0x01, 0x7C, 0x7F}, 1),
            Code::kOk);  // the largest scale
  EXPECT_EQ(decode({0x80, 0x02, 0x01, 0x7C, 0x7F}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({0x80, 0x02, 0x01, 0x0A, 0x7F}, 1), Code::kOk);  // the smallest
  EXPECT_EQ(decode({0x00, 0x02, 0x01, 0x0A, 0x7F}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x00, 0x00, 0x00, 0x00}, 1), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x00, 0x00, 0x00, 0x01}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x00, 0xC0, 0x7F, 0x00}, 1), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x00, 0xC0, 0x7F, 0x01}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x00, 0xC1, 0x7F, 0x00}, 1), Code::kCorrupt);
  EXPECT_EQ(decode({}, 0), Code::kOk);
  EXPECT_EQ(decode({0}, 0), Code::kCorrupt);
}

TEST(Int8, TheExampleOfTheSpecification) {
  std::vector<std::byte> raw(17, std::byte{7});
  const float values[] = {1.0f, -3.0f, 0.1f, 0.0f};
  std::memcpy(raw.data(), values, sizeof(values));
  const uint8_t expected[] = {0x80, 0x83, 0xC1, 0x3C, 0x2A, 0x81, 0x04, 0x00, 0x07};
  const ConstBytes code = std::as_bytes(std::span(expected));
  EXPECT_EQ(FloatCodec("int8", {8, 0}).encode(raw), Code8(code.begin(), code.end()));
}

}  // namespace
}  // namespace wirepress
