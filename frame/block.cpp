// SPDX-License-Identifier: Apache-2.0
// Writes, reads and checks the blocks of a frame (spec/frame.md).
#include "base/bytes.hpp"
#include "frame/frame.hpp"
#include "frame/hash.hpp"

namespace wirepress {
namespace {

constexpr uint32_t kRaw = 1u << 31, kLast = 1u << 30, kOwn = 1u << 29, kSizeMask = kOwn - 1;

unsigned long long ull(uint64_t value) { return value; }

uint64_t seed_of(uint64_t index, uint32_t word) {
  return index + (static_cast<uint64_t>(word) << 32);
}

Status need(uint64_t index, size_t has, size_t needs, size_t* size) {
  *size = needs;
  return fail(Code::kTruncated, "block %llu: needs %zu bytes, the frame has %zu", ull(index), needs,
              has);
}

Status check_word(const Header& header, const Block& block, uint32_t stored) {
  if (block.last && !header.streamed)
    return fail(Code::kCorrupt, "block %llu: marked as the last of a stream", ull(block.index));
  if (block.raw && block.own)
    return fail(Code::kCorrupt, "block %llu: raw, and with a recipe", ull(block.index));
  if (block.raw_size > header.block_size()) {
    return fail(Code::kCorrupt, "block %llu: raw size %llu passes the block size %llu",
                ull(block.index), ull(block.raw_size), ull(header.block_size()));
  }
  if (stored > block.raw_size) {
    return fail(Code::kCorrupt, "block %llu: stored size %u passes its raw size %llu",
                ull(block.index), stored, ull(block.raw_size));
  }
  if (block.raw ? stored != block.raw_size : stored == 0) {
    return fail(Code::kCorrupt, "block %llu: %s with stored size %u and raw size %llu",
                ull(block.index), block.raw ? "raw" : "compressed", stored, ull(block.raw_size));
  }
  return {};
}

}  // namespace

size_t block_head_size(const Header& header, uint32_t word) {
  return head_size(header, word & kLast);
}

Status read_block(const Header& header, uint64_t index, ConstBytes src, Block* block,
                  size_t* size) {
  Reader reader(src);
  uint32_t word;
  if (!reader.read(&word)) return need(index, src.size(), 4, size);
  const size_t head = block_head_size(header, word);
  if (src.size() < head) return need(index, src.size(), head, size);
  Block result;
  result.index = index;
  result.word = word;
  result.raw = word & kRaw;
  result.last = word & kLast;
  result.own = word & kOwn;
  if (header.checksum) reader.read(&result.checksum);
  const size_t covered = reader.position();
  result.raw_size = header.streamed ? header.block_size() : header.block_raw_size(index);
  if (result.last) {
    uint32_t raw_size = 0;
    reader.read(&raw_size);
    result.raw_size = raw_size;
  }
  const uint32_t stored = word & kSizeMask;
  WPR_TRY(check_word(header, result, stored));
  if (!reader.take(stored, &result.payload)) return need(index, src.size(), head + stored, size);
  result.after = src.subspan(covered, head + stored - covered);
  *size = head + stored;
  *block = result;
  return {};
}

BlockReader::BlockReader(const Header& header, ConstBytes bytes, uint64_t first)
    : header_(header),
      rest_(bytes),
      index_(first),
      n_blocks_(header.n_blocks()),
      done_(first == n_blocks_) {}

Status BlockReader::next(Block* block) {
  WPR_TRY(read_block(header_, index_, rest_, block, &size_));
  rest_ = rest_.subspan(size_);
  ++index_;
  done_ = header_.streamed ? block->last : index_ == n_blocks_;
  return {};
}

Status read_blocks(const Header& header, ConstBytes frame, std::vector<Block>* blocks,
                   uint64_t* raw_size) {
  blocks->clear();
  *raw_size = 0;
  BlockReader reader(header, frame.subspan(header.size));
  while (!reader.done()) {
    Block block;
    WPR_TRY(reader.next(&block));
    blocks->push_back(block);
    *raw_size += block.raw_size;
  }
  const size_t rest = reader.rest().size();
  if (rest == 0) return {};
  return fail(Code::kCorrupt, "%zu bytes follow the frame's last block (frame of %zu bytes)", rest,
              frame.size() - rest);
}

Status raw_size_of(ConstBytes frame, uint64_t* raw_size) {
  Header header;
  WPR_TRY(read_header(frame, &header));
  const ConstBytes bytes = frame.subspan(header.size);
  if (!header.streamed) {
    if (header.n_blocks() > bytes.size() / head_size(header, false))
      return fail(Code::kTruncated, "header: more blocks than the frame has bytes for");
    *raw_size = header.raw_size;
    return {};
  }
  uint64_t sum = 0;
  Block block;
  for (BlockReader reader(header, bytes); !reader.done(); sum += block.raw_size)
    WPR_TRY(reader.next(&block));
  *raw_size = sum;
  return {};
}

Status verify_block(const Header& header, const Block& block) {
  if (!header.checksum) return {};
  const uint32_t expected = short_hash(block.after, seed_of(block.index, block.word));
  if (block.checksum == expected) return {};
  return fail(Code::kChecksum, "block %llu: checksum is %08x, its %zu bytes hash to %08x",
              ull(block.index), block.checksum, block.after.size(), expected);
}

size_t seal_block(const Header& header, uint64_t index, Content content, bool last,
                  uint64_t raw_size, size_t stored_size, std::byte* dst) {
  const size_t head = head_size(header, last);
  const uint32_t word = static_cast<uint32_t>(stored_size) | (last ? kLast : 0) |
                        (content == Content::kRaw       ? kRaw
                         : content == Content::kOwnCode ? kOwn
                                                        : 0);
  Writer writer({dst, head});
  writer.write(word);
  if (header.checksum) {
    if (last) {
      const uint32_t size32 = static_cast<uint32_t>(raw_size);
      std::memcpy(dst + 8, &size32, 4);
    }
    const size_t covered = head - 8 + stored_size;
    writer.write(short_hash({dst + 8, covered}, seed_of(index, word)));
  }
  if (last) writer.write(static_cast<uint32_t>(raw_size));
  return head + stored_size;
}

}  // namespace wirepress
