// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stream_reader.hpp"

#include <algorithm>
#include <cstring>

namespace wirepress {

Status StreamReader::begin() {
  expect_ = Expect::kHeader;
  threads_ = settings_.blocks().threads;
  index_ = 0;
  n_input_ = n_output_ = taken_ = block_begin_ = n_blocks_ = 0;
  need_ = 1;
  last_ = false;
  return {};
}

// Tries the header with the bytes gathered so far.
Status StreamReader::read_header_bytes() {
  Header& header = frame_.header;
  const Status status = read_header({input_.data(), n_input_}, &header);
  if (status.code() == Code::kTruncated) {
    ++need_;  // a header is short, and must not swallow bytes that belong to what follows
    return {};
  }
  WPR_TRY(status);
  WPR_TRY(frames_.find_chain(threads_, &frame_));
  n_input_ = block_begin_ = 0;
  need_ = 4;
  last_ = header.n_blocks() == 0;
  expect_ = last_ ? Expect::kEnd : Expect::kBlocks;
  return {};
}

// Looks at the block being gathered; *batch_full when its end completes a batch.
Status StreamReader::look_at_block(bool* batch_full) {
  const ConstBytes gathered(input_.data() + block_begin_, n_input_ - block_begin_);
  BlockReader reader(frame_.header, gathered, index_);
  Block block;
  const Status status = reader.next(&block);
  if (status.code() == Code::kTruncated) {
    need_ = block_begin_ + reader.needs();
    return {};
  }
  WPR_TRY(status);
  ++n_blocks_;
  ++index_;
  block_begin_ = n_input_ - reader.rest().size();
  need_ = block_begin_ + 4;
  last_ = reader.done();
  *batch_full = last_ || n_blocks_ == batch_blocks(threads_, false);
  return {};
}

// Expands the whole blocks in input to output.
Status StreamReader::expand_batch() {
  std::vector<Block>& blocks = frame_.blocks;
  blocks.clear();
  size_t raw = 0;
  BlockReader reader(frame_.header, {input_.data(), n_input_}, index_ - n_blocks_);
  while (blocks.size() < n_blocks_) {
    Block block;
    WPR_TRY(reader.next(&block));
    blocks.push_back(block);
    raw += block.raw_size;
  }
  std::byte* out = output_.reserve(raw);
  if (!out) return fail(Code::kNoMemory, "no memory for %zu bytes of blocks", raw);
  WPR_TRY(frames_.expand_blocks(&frame_, threads_, Into::kPlace, {out, raw}));
  n_output_ = raw;
  taken_ = 0;
  n_blocks_ = 0;
  n_input_ = block_begin_ = 0;
  need_ = 4;
  if (last_) expect_ = Expect::kEnd;
  return {};
}

// Adds bytes of src to input, as far as they are needed.
Status StreamReader::gather(ConstBytes src, size_t* used) {
  const size_t part = std::min(need_ - n_input_, src.size() - *used);
  // What a block claims to need is believed only as far as bytes really come: the buffer grows by
  // doubling, not to the claim.
  const size_t room = std::min(need_, std::max<size_t>(2 * n_input_, 1 << 16) + part);
  if (!input_.reserve(std::max(room, n_input_ + part), n_input_))
    return fail(Code::kNoMemory, "no memory for %zu bytes of input", need_);
  std::memcpy(input_.data() + n_input_, src.data() + *used, part);
  *used += part;
  n_input_ += part;
  return {};
}

Status StreamReader::update(ConstBytes src, size_t* consumed, Bytes dst, size_t* written,
                            bool* done) {
  const Stopwatch watch(&stats_.decompress_seconds);
  if (expect_ == Expect::kNothing)
    return fail(Code::kParameter, "expand_update without expand_begin");
  size_t used = 0, out = 0;
  Status status;
  while (status.ok()) {
    const size_t ready = std::min(n_output_ - taken_, dst.size() - out);
    if (ready) std::memcpy(dst.data() + out, output_.data() + taken_, ready);
    taken_ += ready;
    out += ready;
    if (taken_ < n_output_ || expect_ == Expect::kEnd || used == src.size()) break;
    status = gather(src, &used);
    if (!status.ok() || n_input_ < need_) continue;
    if (expect_ == Expect::kHeader) {
      status = read_header_bytes();
      continue;
    }
    bool batch_full = false;
    status = look_at_block(&batch_full);
    if (status.ok() && batch_full) status = expand_batch();
  }
  if (!status.ok()) {
    expect_ = Expect::kNothing;
    return status;
  }
  *consumed = used;
  *written = out;
  *done = expect_ == Expect::kEnd && taken_ == n_output_;
  stats_.expanded_bytes += out;
  return {};
}

}  // namespace wirepress
