// SPDX-License-Identifier: Apache-2.0
// Direct writes are whole blocks from aligned memory. A record ends anywhere: its last block is
// padded with zeros, kept, and written again with the next record; what was in it before is the
// same then, so a torn write does not harm it.
#include "store/appender.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace wirepress::store {
namespace {

constexpr size_t kMostBuffer = 4 << 20;

}  // namespace

size_t Appender::buffer_size(uint64_t frame_size) {
  return std::min<uint64_t>(kMostBuffer, (frame_size + 3 * kBlock) / kBlock * kBlock);
}

Status Appender::open(uint64_t end, size_t buffer_size, uint64_t reserve) {
  reserve_ = reserve;
  reserved_ = end;
  if (buffer_size == 0) return {};
  chunk_ = Buffer(buffer_size, kBlock);
  if (!direct_.open_direct(file_, File::Way::kWrite)) return {};
  return read_last_block(end);
}

Status Appender::read_last_block(uint64_t end) {
  filled_ = end % kBlock;
  at_ = end - filled_;
  return file_.read(at_, {chunk_.data(), filled_});
}

Status Appender::append(uint64_t offset, ConstBytes first, ConstBytes second) {
  const uint64_t end = offset + first.size() + second.size();
  if (reserve_ > 0 && end > reserved_) {
    reserved_ = end + reserve_;
    // No room for as much, or it cannot: what is written needs no reserve.
    if (!file_.allocate(offset, reserved_ - offset)) reserve_ = 0;
    touched_ = true;
  }
  if (!direct_.is_open()) return file_.write(offset, first, second);
  touched_ = true;
  return append_direct(offset, first, second);
}

Status Appender::append_direct(uint64_t offset, ConstBytes first, ConstBytes second) {
  std::array<std::byte, kBlock> before;
  const size_t n_before = offset % kBlock;
  std::memcpy(before.data(), chunk_.data(), n_before);
  at_ = offset - n_before;
  filled_ = n_before;
  Status status = fill(first);
  if (status.ok()) status = fill(second);
  if (status.ok() && filled_ > 0) {
    const size_t last = filled_ / kBlock * kBlock, rest = filled_ - last;
    std::memset(chunk_.data() + filled_, 0, (kBlock - filled_ % kBlock) % kBlock);
    filled_ = last + (rest ? kBlock : 0);
    status = write_blocks();
    if (status.ok()) std::memmove(chunk_.data(), chunk_.data() + last, rest);
  }
  if (!status.ok()) std::memcpy(chunk_.data(), before.data(), n_before);
  return status;
}

Status Appender::fill(ConstBytes bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), chunk_.size() - filled_);
    std::memcpy(chunk_.data() + filled_, bytes.data(), n);
    filled_ += n;
    bytes = bytes.subspan(n);
    if (filled_ < chunk_.size()) continue;
    WPR_TRY(write_blocks());
    at_ += chunk_.size();
    filled_ = 0;
  }
  return {};
}

Status Appender::write_blocks() {
  const ConstBytes blocks{chunk_.data(), filled_};
  size_t taken = 0;
  const Status status = direct_.write(at_, blocks, {}, &taken);
  if (status.ok()) return status;
  // The rest of a write that ended within a block, or one that this device takes from the cache
  // only.
  if (!direct_.refused_shape()) return status;
  return file_.write(at_ + taken, blocks.subspan(taken));
}

Status Appender::cut(uint64_t end) {
  if (!touched_) return {};
  touched_ = false;
  reserved_ = end;
  return file_.truncate(end);
}

}  // namespace wirepress::store
