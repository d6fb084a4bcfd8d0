// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stream_writer.hpp"

#include <algorithm>
#include <cstring>

namespace wirepress {

size_t StreamWriter::bound(uint64_t n) const {
  if (n > kMaxRawSize) return SIZE_MAX;
  const auto bound = [n](uint64_t block_size, uint64_t batch) {
    const uint64_t raw = n + batch;
    return kMaxHeader + raw + 8 * (raw / block_size + 2) + 4;
  };
  const uint64_t block_size = settings_.block_size();
  const uint64_t next =
      bound(block_size, batch_blocks(settings_.threads(), settings_.wants_auto()) * block_size);
  return active_ ? std::max(next, bound(header_.block_size(), batch_)) : next;
}

Status StreamWriter::begin(DType dtype, Bytes dst, size_t* written) {
  active_ = false;
  header_ = {};
  header_.streamed = true;
  header_.dtype = dtype;
  header_.raw_size = kUnknownSize;
  blocks_ = settings_.blocks();
  chooses_ = settings_.wants_auto();
  if (chooses_) {
    WPR_TRY(frames_.begin_auto(&choice_, &header_));
    WPR_TRY(frames_.begin_stored(&header_, &chain_, dst));
  } else {
    WPR_TRY(frames_.begin_plain(&header_, &chain_, dst));
  }
  index_ = 0;
  n_pending_ = 0;
  batch_ = batch_blocks(blocks_.threads, chooses_) << header_.block_log;
  if (!pending_.reserve(batch_))
    return fail(Code::kNoMemory, "no memory for a batch of %zu bytes", batch_);
  active_ = true;
  *written = header_.size;
  stats_.wire_bytes += header_.size;
  return {};
}

// Compresses the first n bytes that wait.
Status StreamWriter::write_batch(size_t n, bool end, Bytes dst, size_t* written) {
  const ConstBytes src(pending_.data(), n);
  std::span<const ChainPointer> groups;
  if (chooses_) {
    WPR_TRY(frames_.choose_groups(header_, blocks_.threads, src, &choice_));
    groups = choice_.groups;
  }
  const PlainBlocks blocks(header_, blocks_, *chain_, groups, index_, src, end);
  const Status status = frames_.make_blocks(blocks, blocks_.threads, dst, written);
  FrameWriter::note_failures(*chain_, groups);
  WPR_TRY(status);
  frames_.count_kernels(*chain_, groups, header_, n);
  return {};
}

Status StreamWriter::update(ConstBytes src, Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (!active_) return fail(Code::kParameter, "stream_update without stream_begin");
  const size_t n = src.size();
  size_t offset = 0;
  // A full batch is written only when more bytes follow it: the last block must be marked.
  while (!src.empty()) {
    if (n_pending_ == batch_) {
      size_t size;
      const Status status = write_batch(batch_, false, dst.subspan(offset), &size);
      if (!status.ok()) return active_ = false, status;
      offset += size;
      index_ += batch_ >> header_.block_log;
      n_pending_ = 0;
    }
    const size_t part = std::min(src.size(), batch_ - n_pending_);
    std::memcpy(pending_.data() + n_pending_, src.data(), part);
    n_pending_ += part;
    src = src.subspan(part);
  }
  *written = offset;
  stats_.raw_bytes += n;
  stats_.wire_bytes += offset;
  return {};
}

Status StreamWriter::end(Bytes dst, size_t* written) {
  const Stopwatch watch(&stats_.compress_seconds);
  if (!active_) return fail(Code::kParameter, "stream_end without stream_begin");
  active_ = false;
  WPR_TRY(write_batch(n_pending_, true, dst, written));
  stats_.wire_bytes += *written;
  return {};
}

}  // namespace wirepress
