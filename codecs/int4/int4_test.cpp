// SPDX-License-Identifier: Apache-2.0
// What the decoder must refuse, beside the tests of all codecs of its kind.
#include "codecs/common/testing/block_quantiser.hpp"

namespace wirepress {
namespace {

struct Int4Case {
  static constexpr const char* kName = "int4";
  static constexpr int kLevels = 7;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Int4, BlockQuantiser, Int4Case);

Code decode(std::vector<uint8_t> code, size_t values) {
  return decode_blocks(Int4Case::kName, std::move(code), values);
}

TEST(Int4, RefusesWhatNoEncoderWrites) {
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x97}, 2), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x87}, 2), Code::kCorrupt);  // -8
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x18}, 2), Code::kCorrupt);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x07}, 1), Code::kOk);
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0x3E, 0x17}, 1),
            Code::kCorrupt);  // beyond the values
  EXPECT_EQ(decode({0x01, 0x6E, 0xDB, 0x3E, 0x97}, 2),
            Code::kCorrupt);                                             // a lower bit
  EXPECT_EQ(decode({0x00, 0x6E, 0xDB, 0xBE, 0x97}, 2), Code::kCorrupt);  // negative
  EXPECT_EQ(decode({0x00, 0x49, 0x12, 0x7E, 0x97}, 2),
            Code::kOk);  // the largest scale
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
