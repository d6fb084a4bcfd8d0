// SPDX-License-Identifier: Apache-2.0
// Tests of headers, blocks and the walk over a frame, whole, truncated and damaged.
#include "frame/frame.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace wirepress {
namespace {

Header small_header() {
  Header header;
  const uint64_t shape[] = {3, 5};
  EXPECT_TRUE(set_shape(&header, DType::kFloat32, 2, shape).ok());
  header.block_log = 10;
  header.stages.n = 1;
  header.stages.stage[0] = {0x04, 1, {0xF9}};
  return header;
}

std::vector<std::byte> bytes_of(Header header) {
  std::vector<std::byte> bytes(kMaxHeader);
  size_t size;
  EXPECT_TRUE(write_header(&header, bytes, &size).ok());
  bytes.resize(size);
  return bytes;
}

TEST(Header, RoundTrips) {
  const auto bytes = bytes_of(small_header());
  Header header;
  ASSERT_TRUE(read_header(bytes, &header).ok());
  EXPECT_EQ(header.size, bytes.size());
  EXPECT_EQ(header.raw_size, 60u);
  EXPECT_EQ(header.n_blocks(), 1u);
  EXPECT_EQ(header.stages.stage[0].id, 0x04);
  EXPECT_EQ(header.stages.stage[0].bytes[0], 0xF9);
  EXPECT_EQ(header.shape[1], 5u);
}

TEST(Header, EveryTruncationIsTruncated) {
  const auto bytes = bytes_of(small_header());
  for (size_t n = 0; n < bytes.size(); ++n) {
    Header header;
    EXPECT_EQ(read_header(ConstBytes(bytes).first(n), &header).code(), Code::kTruncated) << n;
  }
}

TEST(Header, EveryFlippedBitIsRefused) {
  const auto good = bytes_of(small_header());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    bytes.resize(kMaxHeader);
    Header header;
    const Status status = read_header(bytes, &header);
    EXPECT_FALSE(status.ok()) << bit;
    EXPECT_GT(std::strlen(status.text()), 10u);
  }
}

TEST(Header, RowsWithoutAShapeAreRefused) {
  const auto code_with = [](bool streamed, int n_dims) {
    Header header = small_header();
    header.slabs = true;
    header.streamed = streamed;
    header.n_dims = n_dims;
    Header read;
    return read_header(bytes_of(header), &read).code();
  };
  EXPECT_EQ(code_with(false, 2), Code::kOk);
  EXPECT_EQ(code_with(false, 1), Code::kCorrupt);
  EXPECT_EQ(code_with(false, kNoShape), Code::kCorrupt);
  EXPECT_EQ(code_with(true, kNoShape), Code::kCorrupt);
}

TEST(Header, ASeriesIsNamed) {
  const std::array series = {std::byte{'W'}, std::byte{'P'}, std::byte{'S'}, std::byte{0x10}};
  Header header;
  const Status status = read_header(series, &header);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(std::string_view(status.text()).find("wirepress decompress"), std::string_view::npos);
}

// A 4-D shape of 2^46 bytes, and two codecs of which one has four parameters.
TEST(Header, ALargeOneFits) {
  Header header;
  const uint64_t shape[] = {1ull << 21, 129, 1 << 9, 129};
  ASSERT_TRUE(set_shape(&header, DType::kFloat32, 4, shape).ok());
  header.stages.n = 2;
  header.stages.stage[0] = {0x20, 4, {1, 1, 1, 1}};
  header.stages.stage[1] = {0x04, 1, {1}};
  EXPECT_LE(bytes_of(header).size(), kMaxHeader);
}

TEST(Header, TooLongIsAnError) {
  Header header = small_header();
  header.stages.n = 4;
  for (Stage& stage : header.stages.stage) stage = {0x20, kMaxParamBytes, {}};
  std::byte bytes[64];
  size_t size;
  EXPECT_EQ(write_header(&header, bytes, &size).code(), Code::kParameter);
}

TEST(Shape, OverflowIsRefused) {
  Header header;
  const uint64_t huge[] = {1ull << 40, 1ull << 40};
  EXPECT_EQ(set_shape(&header, DType::kBytes, 2, huge).code(), Code::kParameter);
  const uint64_t wraps[] = {1ull << 32, 1ull << 32, 1, 1};
  EXPECT_EQ(set_shape(&header, DType::kInt8, 4, wraps).code(), Code::kParameter);
  const uint64_t empty[] = {7, 0};
  ASSERT_TRUE(set_shape(&header, DType::kInt64, 2, empty).ok());
  EXPECT_EQ(header.raw_size, 0u);
}

struct Sealed {
  Header header;
  std::vector<std::byte> bytes;
};

Sealed sealed(bool streamed) {
  Sealed result{small_header(), {}};
  if (streamed) {
    result.header.streamed = true;
    result.header.n_dims = kNoShape;
    result.header.raw_size = kUnknownSize;
  }
  const size_t head = head_size(result.header, streamed);
  result.bytes.assign(head + 40, std::byte{9});
  seal_block(result.header, 0, Content::kCode, streamed, 60, 40, result.bytes.data());
  return result;
}

TEST(Block, RoundTripsAndIsVerified) {
  for (const bool streamed : {false, true}) {
    const Sealed it = sealed(streamed);
    Block block;
    size_t size;
    ASSERT_TRUE(read_block(it.header, 0, it.bytes, &block, &size).ok());
    EXPECT_EQ(size, it.bytes.size());
    EXPECT_EQ(block.raw_size, 60u);
    EXPECT_EQ(block.payload.size(), 40u);
    EXPECT_TRUE(verify_block(it.header, block).ok());
    block.index = 1;  // the same block in another place
    EXPECT_EQ(verify_block(it.header, block).code(), Code::kChecksum);
  }
}

TEST(Block, TruncationSaysWhatIsNeeded) {
  const Sealed it = sealed(true);
  for (size_t n = 0; n < it.bytes.size(); ++n) {
    Block block;
    size_t needs = 0;
    const Status status = read_block(it.header, 0, ConstBytes(it.bytes).first(n), &block, &needs);
    ASSERT_EQ(status.code(), Code::kTruncated) << n;
    EXPECT_GT(needs, n);
    EXPECT_LE(needs, it.bytes.size());
  }
}

TEST(Block, EveryFlippedBitIsRefused) {
  for (const bool streamed : {false, true}) {
    const Sealed it = sealed(streamed);
    for (size_t bit = 0; bit < 8 * it.bytes.size(); ++bit) {
      auto bytes = it.bytes;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      Block block;
      size_t size;
      const bool accepted = read_block(it.header, 0, bytes, &block, &size).ok() &&
                            size == bytes.size() && verify_block(it.header, block).ok();
      EXPECT_FALSE(accepted) << bit;
    }
  }
}

// A frame of three blocks, 1024 + 1024 + 52 raw bytes, each stored in 20.
std::vector<std::byte> frame_of_three(bool streamed) {
  Header header = small_header();
  const uint64_t shape[] = {525};
  EXPECT_TRUE(set_shape(&header, DType::kFloat32, 1, shape).ok());
  header.streamed = streamed;
  if (streamed) {
    header.n_dims = kNoShape;
    header.raw_size = kUnknownSize;
  }
  std::vector<std::byte> frame = bytes_of(header);
  for (uint64_t index = 0; index < 3; ++index) {
    const bool last = streamed && index == 2;
    std::vector<std::byte> block(head_size(header, last) + 20, std::byte{9});
    const uint64_t raw_size = index < 2 ? 1024 : 52;
    EXPECT_EQ(seal_block(header, index, Content::kCode, last, raw_size, 20, block.data()),
              block.size());
    frame.insert(frame.end(), block.begin(), block.end());
  }
  return frame;
}

TEST(Walk, FindsAllBlocksAndNothingElse) {
  for (const bool streamed : {false, true}) {
    auto frame = frame_of_three(streamed);
    Header header;
    ASSERT_TRUE(read_header(frame, &header).ok());
    std::vector<Block> blocks;
    uint64_t raw_size;
    ASSERT_TRUE(read_blocks(header, frame, &blocks, &raw_size).ok());
    ASSERT_EQ(blocks.size(), 3u);
    EXPECT_EQ(raw_size, 2100u);
    for (const Block& block : blocks) EXPECT_TRUE(verify_block(header, block).ok());
    ASSERT_TRUE(raw_size_of(frame, &raw_size).ok());
    EXPECT_EQ(raw_size, 2100u);
    for (size_t n = header.size; n < frame.size(); ++n)
      EXPECT_EQ(read_blocks(header, ConstBytes(frame).first(n), &blocks, &raw_size).code(),
                Code::kTruncated);
    EXPECT_EQ(raw_size_of(ConstBytes(frame).first(header.size + 10), &raw_size).code(),
              Code::kTruncated);
    frame.push_back({});
    EXPECT_EQ(read_blocks(header, frame, &blocks, &raw_size).code(), Code::kCorrupt);
  }
}

TEST(Walk, BeginsAtAnyBlock) {
  const auto frame = frame_of_three(false);
  Header header;
  ASSERT_TRUE(read_header(frame, &header).ok());
  Block block;
  BlockReader all(header, ConstBytes(frame).subspan(header.size));
  ASSERT_TRUE(all.next(&block).ok());
  BlockReader cut(header, all.rest().first(7), 1);
  ASSERT_EQ(cut.next(&block).code(), Code::kTruncated);
  EXPECT_EQ(cut.needs(), 8u);
  BlockReader reader(header, all.rest(), 1);
  ASSERT_TRUE(reader.next(&block).ok());
  EXPECT_EQ(block.index, 1u);
  EXPECT_FALSE(reader.done());
  ASSERT_TRUE(reader.next(&block).ok());
  EXPECT_EQ(block.raw_size, 52u);
  EXPECT_TRUE(reader.done());
}

}  // namespace
}  // namespace wirepress
