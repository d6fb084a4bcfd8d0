// SPDX-License-Identifier: Apache-2.0
// How the payloads of a frame's blocks are made. Blocks are made in any order, by any worker.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/memory.hpp"
#include "pipeline/chains.hpp"
#include "pipeline/halves.hpp"

namespace wirepress {

inline constexpr size_t kGroupBlocks = 8;  // blocks that recipe=auto decides about together

// The failure of a block, whose number stands first in its sentence.
Status in_block(uint64_t index, const Status& status);

// Blocks of a stream that are coded together: enough that every worker has two, so that uneven
// blocks even out; whole groups where there is something to choose for them.
inline size_t batch_blocks(int threads, bool groups) {
  const size_t n = threads > 1 ? 2 * static_cast<size_t>(threads) : 1;
  return groups ? (n + kGroupBlocks - 1) / kGroupBlocks * kGroupBlocks : n;
}

enum class Stored { kCode, kRawByProbe, kRawBySize };

struct Payload {
  size_t size = 0;
  Content content = Content::kRaw;
  Stored stored = Stored::kRawBySize;
  const std::byte* outside = nullptr;  // where it lies, if not in the memory that was offered
};

// The options that blocks are made by. A frame, and a stream until it ends, has one set of them.
struct BlockSettings {
  bool checksum = true, probe = true;
  int block_log = 19, threads = 1;
  uint64_t seed = 0;
};

// Blocks first, first + 1, ... of n bytes; `end`: the final one is the last of a stream.
class BlockMaker {
 public:
  BlockMaker(const Header& header, uint64_t seed, uint64_t first, size_t n, bool end)
      : header_(header),
        block_size_(header.block_size()),
        seed_(seed),
        first_(first),
        n_(n),
        end_(end) {}
  virtual ~BlockMaker() = default;

  const Header& header() const { return header_; }
  uint64_t first() const { return first_; }
  size_t n_blocks() const {
    const size_t n = (n_ + block_size_ - 1) / block_size_;
    return end_ && n == 0 ? 1 : n;
  }
  bool is_last(size_t i) const { return end_ && i + 1 == n_blocks(); }
  size_t begin(size_t i) const { return i * block_size_; }
  size_t raw_size(size_t i) const { return std::min<size_t>(block_size_, n_ - begin(i)); }
  Draw draw(size_t i) const;  // of block i

  // `out` may be smaller than the raw size only where make() leaves raw blocks outside.
  virtual Status make(int worker, size_t i, Bytes out, Payload* payload) const = 0;
  virtual int n_workers() const = 0;  // `worker` is below it

  // As make, but a device may have the block meanwhile: begun->code.device. end_make then ends it,
  // called by the same worker until it is true. `left` as of Kernel::begin_encode. Where `divides`
  // is false, make does the same.
  struct Begun {
    size_t prefix = 0;
    Chain::Begun code{};
  };
  virtual bool divides() const { return false; }
  virtual Status begin_make(int worker, size_t i, Bytes out, double /*left*/, Payload* payload,
                            Begun*) const {
    return make(worker, i, out, payload);
  }
  virtual bool end_make(int /*worker*/, size_t, Payload*, Begun*, Status*) const { return true; }

 private:
  const Header& header_;
  const size_t block_size_;
  const uint64_t seed_, first_;
  const size_t n_;
  const bool end_;
};

// A code must save 1/64 of the block: less is not worth expanding.
inline size_t code_limit(size_t raw_size) { return raw_size - raw_size / 64 - (raw_size > 0); }

// Plain compression. `groups`: a chain for every kGroupBlocks blocks, or empty: all by `chain`.
class PlainBlocks : public BlockMaker {
 public:
  PlainBlocks(const Header& header, const BlockSettings& settings, Chain& chain,
              std::span<const ChainPointer> groups, uint64_t first, ConstBytes src, bool end)
      : BlockMaker(header, settings.seed, first, src.size(), end),
        chain_(chain),
        groups_(groups),
        src_(src),
        probe_(settings.probe) {}
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override;
  int n_workers() const override;
  bool divides() const override;
  Status begin_make(int worker, size_t i, Bytes out, double left, Payload* payload,
                    Begun* begun) const override;
  bool end_make(int worker, size_t i, Payload* payload, Begun* begun,
                Status* status) const override;

 private:
  ConstBytes block(size_t i) const { return src_.subspan(begin(i), raw_size(i)); }
  Chain& chain_of(size_t i) const { return groups_.empty() ? chain_ : *groups_[i / kGroupBlocks]; }
  // Where the code goes, behind a recipe of the block's own; empty: the block stays as it is.
  Bytes room_for(size_t i, Bytes out, Payload* payload, size_t* prefix) const;
  Status conclude(size_t i, const Status& status, size_t prefix, size_t size,
                  Payload* payload) const;

  Chain& chain_;
  std::span<const ChainPointer> groups_;
  ConstBytes src_;
  bool probe_;
};

// A worker's memory for blocks that a device has and the cores do, or whose values are cast.
struct Staging {
  Buffer raw, residual, halves;
};

// Memory for `size` bytes of a worker's staging.
Status reserve(Buffer& buffer, size_t size, Bytes* bytes);

class FeedbackBlocks : public BlockMaker {
 public:
  // `staging` has an element for each worker of the chain, where src holds halves.
  FeedbackBlocks(const Header& header, const BlockSettings& settings, Chain& chain, ConstBytes src,
                 const Halves& halves, std::vector<Staging>& staging, Bytes residual)
      : BlockMaker(header, settings.seed, 0, residual.size(), false),
        chain_(chain),
        src_(src),
        halves_(halves),
        staging_(staging),
        residual_(residual) {}
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override;
  int n_workers() const override { return chain_.n_workers(); }

 private:
  Chain& chain_;
  ConstBytes src_;
  const Halves& halves_;
  std::vector<Staging>& staging_;
  Bytes residual_;
};

// Steps between words (base/order.hpp), whose type is the header's.
class StepBlocks : public BlockMaker {
 public:
  StepBlocks(const Header& header, const BlockSettings& settings, Chain& chain, ConstBytes before,
             ConstBytes after)
      : BlockMaker(header, settings.seed, 0, after.size(), false),
        chain_(chain),
        before_(before),
        after_(after) {}
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override;
  int n_workers() const override { return chain_.n_workers(); }

 private:
  Chain& chain_;
  ConstBytes before_, after_;
};

// The workers that all these chains have.
int least_workers(const Chain& chain, std::span<const ChainPointer> others);

// A frame whose header and blocks were read, with the chains that expand them.
struct ParsedFrame {
  Header header;
  uint64_t raw_size = 0;
  std::vector<Block> blocks;      // all of the frame, or some that follow each other
  ChainPointer chain;             // of the header's recipe
  Place place;                    // of what it is expanded to; the chains are for the cores
  Halves halves;                  // of what it is added to
  std::vector<ChainPointer> own;  // for every block, where one has a recipe of its own

  Chain& chain_of(size_t i) const { return own.empty() ? *chain : *own[i]; }
  int n_workers() const { return least_workers(*chain, own); }
};

// The sum of two frames of one header, block by block.
class SumBlocks : public BlockMaker {
 public:
  SumBlocks(const Header& header, const BlockSettings& settings, const ParsedFrame& a,
            const ParsedFrame& b)
      : BlockMaker(header, settings.seed, 0, header.raw_size, false), a_(a), b_(b) {}
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override;
  int n_workers() const override { return std::min(a_.n_workers(), b_.n_workers()); }

 private:
  const ParsedFrame &a_, &b_;
};

}  // namespace wirepress
