// SPDX-License-Identifier: Apache-2.0
// Writes and checks frames (spec/frame.md). Knows no codec: a stage is an id and some bytes.
#pragma once

#include <vector>

#include "base/kernel.hpp"

namespace wirepress {

inline constexpr int kFrameVersion = 1;
inline constexpr int kNoShape = -1;
inline constexpr int kMaxStages = 4;
inline constexpr size_t kMaxHeader = 64;
inline constexpr int kMinBlockLog = 10, kMaxBlockLog = 28;
inline constexpr uint64_t kMaxRawSize = uint64_t{1} << 48;
inline constexpr uint64_t kUnknownSize = UINT64_MAX;
inline constexpr size_t kMaxBlockHead = 12;  // block word, checksum, raw size of a last block

inline constexpr int kMaxOwnRecipes = 8;  // different ones in the blocks of a frame

struct Stage {
  uint16_t id;
  uint8_t n_bytes;
  uint8_t bytes[kMaxParamBytes];  // its parameters, as its codec packs them
};

// A recipe as it stands in headers and blocks.
struct Stages {
  int n = 0;
  Stage stage[kMaxStages] = {};
};

struct Header {
  bool checksum = true;
  bool streamed = false;
  bool slabs = false;  // blocks are whole rows of the array
  DType dtype = DType::kBytes;
  int n_dims = kNoShape;  // 0..4 or kNoShape
  uint64_t shape[kMaxDims] = {};
  uint64_t raw_size = 0;  // kUnknownSize when streamed
  int block_log = 20;
  Stages stages;
  size_t size = 0;  // bytes of the header itself; set by reading and writing

  uint64_t block_size() const { return slabs ? slab_size() : uint64_t{1} << block_log; }
  // With slabs: four rows, or as many times four as fit 2^block_log bytes.
  uint64_t slab_size() const;
  uint64_t n_blocks() const {
    const uint64_t each = block_size();
    return streamed ? kUnknownSize : (raw_size + each - 1) / each;
  }
  // Raw bytes of block `index` where sizes are known.
  uint64_t block_raw_size(uint64_t index) const {
    const uint64_t left = raw_size - index * block_size();
    return left < block_size() ? left : block_size();
  }
};

// Sets raw_size from dtype and shape; kParameter when it overflows or passes 2^48.
Status set_shape(Header* header, DType dtype, int n_dims, const uint64_t* shape);

// Whether an array of this dtype and shape can be cut in slabs: two dimensions or more, not empty,
// and four rows fit the largest block.
bool can_be_slabs(const Header& header);

// Writes the header and sets its size. kParameter: it would need more than kMaxHeader bytes.
Status write_header(Header* header, Bytes dst, size_t* written);

// kTruncated when src may be the beginning of a header.
Status read_header(ConstBytes src, Header* header);

struct Block {
  uint64_t index = 0;
  bool raw = false;
  bool last = false;  // of a streamed frame
  bool own = false;   // the payload begins with a recipe of its own
  uint64_t raw_size = 0;
  uint32_t checksum = 0;
  uint32_t word = 0;
  ConstBytes after;    // what the checksum covers: raw size field, payload
  ConstBytes payload;  // empty until the bytes are there
};

// Bytes of a block's head, given its first 4 bytes.
size_t block_head_size(const Header& header, uint32_t word);

// Reads block `index` at the beginning of src: *size is its length in all. kTruncated when src ends
// before it; *size is then how many bytes are needed to know more (never more than the block).
Status read_block(const Header& header, uint64_t index, ConstBytes src, Block* block, size_t* size);

// Reads a frame's blocks in order, from bytes that begin with block `first`. It refers to the
// header and the bytes.
class BlockReader {
 public:
  BlockReader(const Header& header, ConstBytes bytes, uint64_t first = 0);
  bool done() const { return done_; }        // the frame's last block was read
  ConstBytes rest() const { return rest_; }  // behind the blocks that were read
  // Fails as read_block does; after kTruncated, needs() bytes from the block's first one on are
  // needed to know more.
  Status next(Block* block);
  size_t needs() const { return size_; }

 private:
  const Header& header_;
  ConstBytes rest_;
  uint64_t index_, n_blocks_;
  size_t size_ = 0;
  bool done_;
};

// All blocks of a whole frame and the bytes that they hold; kCorrupt where anything follows them.
Status read_blocks(const Header& header, ConstBytes frame, std::vector<Block>* blocks,
                   uint64_t* raw_size);

// The bytes that a whole frame holds, which may be what it claims: no checksum is verified. More
// blocks than the frame has bytes for are refused, so a caller may allocate the result.
Status raw_size_of(ConstBytes frame, uint64_t* raw_size);

// kChecksum when the payload is not what was written; always fine without checksums.
Status verify_block(const Header& header, const Block& block);

// The recipe at the beginning of a block's payload, and what lies behind it.
Status read_own_stages(const Block& block, Stages* stages, ConstBytes* code);
// Writes it; 0: dst is too small.
size_t write_own_stages(const Stages& stages, Bytes dst);

bool same(const Stages& a, const Stages& b);

enum class Content { kCode, kOwnCode, kRaw };

// Writes the head of a block whose payload already lies `head size` bytes into dst.
// Returns the block's size in all.
size_t seal_block(const Header& header, uint64_t index, Content content, bool last,
                  uint64_t raw_size, size_t stored_size, std::byte* dst);

// Head bytes of a block to be written.
inline size_t head_size(const Header& header, bool last) {
  return 4 + (header.checksum ? 4 : 0) + (last ? 4 : 0);
}

}  // namespace wirepress
