// SPDX-License-Identifier: Apache-2.0
// Blocks, on one thread or several. The bytes are the same whichever way.
#include <atomic>
#include <cstring>

#include "pipeline/context.hpp"
#include "pipeline/probe.hpp"

namespace wirepress {
namespace {

unsigned long long ull(uint64_t value) { return value; }

Status in_block(uint64_t index, const Status& status) {
  return fail(status.code(), "block %llu: %s", ull(index), status.text());
}

// A code must save 1/64 of the block: less is not worth expanding.
size_t code_limit(size_t raw_size) { return raw_size - raw_size / 64 - (raw_size > 0); }

struct Encoder {
  const Header& header;
  Chain& chain;
  uint64_t first;
  ConstBytes src;
  bool end;  // the final block is the last of a stream
  bool probe;

  size_t n_blocks() const {
    const size_t n = (src.size() + header.block_size() - 1) >> header.block_log;
    return end && n == 0 ? 1 : n;
  }
  ConstBytes raw(size_t i) const {
    const size_t begin = i << header.block_log;
    return src.subspan(begin, std::min<size_t>(header.block_size(), src.size() - begin));
  }
  bool is_last(size_t i) const { return end && i + 1 == n_blocks(); }

  // Encodes block i to `out` if that pays and fits; else it is to be stored raw.
  Status encode(int worker, size_t i, Bytes out, size_t* size, Stored* stored) const {
    const ConstBytes block = raw(i);
    *size = block.size();
    *stored = Stored::kRawBySize;
    if (block.empty()) return {};
    if (probe && looks_incompressible(block)) {
      *stored = Stored::kRawByProbe;
      return {};
    }
    const Bytes limited = out.first(std::min(out.size(), code_limit(block.size())));
    const Status status = chain.encode(worker, block, limited, size);
    if (status.code() == Code::kDstTooSmall || (status.ok() && *size == 0)) {
      *size = block.size();
      return {};
    }
    if (!status.ok()) return in_block(first + i, status);
    *stored = Stored::kCode;
    return {};
  }

  Status no_room(size_t i, size_t needs, size_t has) const {
    return fail(Code::kDstTooSmall, "block %llu: needs %zu bytes, dst has %zu left", ull(first + i),
                needs, has);
  }

  void count(Stored stored, Stats* stats) const {
    ++stats->blocks;
    stats->bypassed_probe += stored == Stored::kRawByProbe;
    stats->bypassed_size += stored == Stored::kRawBySize;
  }
};

// Blocks are encoded out of order into a ring of slots and copied out in order, by whichever worker
// finishes the block that is next; no worker waits unless it is a whole ring ahead.
struct ParallelEncode {
  const Encoder& encoder;
  Bytes dst;
  std::vector<EncodeSlot>& slots;
  Stats* stats;
  std::mutex mutex{};
  std::condition_variable moved{};
  size_t next = 0;     // block to encode
  size_t drained = 0;  // blocks copied out
  bool draining = false;
  size_t offset = 0;
  Status status{};

  void work(int worker) {
    const size_t n = encoder.n_blocks();
    std::unique_lock lock(mutex);
    while (true) {
      moved.wait(lock, [&] { return !status.ok() || next >= n || next < drained + slots.size(); });
      if (!status.ok() || next >= n) return;
      const size_t i = next++;
      EncodeSlot& slot = slots[i % slots.size()];
      lock.unlock();
      Status result = encode(worker, i, &slot);
      lock.lock();
      if (!result.ok()) return stop(result);
      slot.ready = true;
      drain(lock);
    }
  }

  Status encode(int worker, size_t i, EncodeSlot* slot) {
    const size_t limit = code_limit(encoder.raw(i).size());
    std::byte* out = slot->code.reserve(limit);
    if (!out) return fail(Code::kNoMemory, "no memory for a block of %zu bytes", limit);
    return encoder.encode(worker, i, {out, limit}, &slot->size, &slot->stored);
  }

  void stop(const Status& result) {
    if (status.ok()) status = result;
    moved.notify_all();
  }

  void drain(std::unique_lock<std::mutex>& lock) {
    if (draining) return;
    draining = true;
    while (status.ok() && slots[drained % slots.size()].ready) {
      const size_t i = drained;
      EncodeSlot& slot = slots[i % slots.size()];
      lock.unlock();
      Status result = copy_out(i, slot);
      lock.lock();
      slot.ready = false;
      if (!result.ok()) stop(result);
      ++drained;
      moved.notify_all();
    }
    draining = false;
  }

  Status copy_out(size_t i, EncodeSlot& slot) {
    const Header& header = encoder.header;
    const bool last = encoder.is_last(i), is_raw = slot.stored != Stored::kCode;
    const size_t head = head_size(header, last);
    if (dst.size() - offset < head + slot.size)
      return encoder.no_room(i, head + slot.size, dst.size() - offset);
    std::byte* out = dst.data() + offset;
    const void* from = is_raw ? encoder.raw(i).data() : slot.code.data();
    if (slot.size) std::memcpy(out + head, from, slot.size);
    offset +=
        seal_block(header, encoder.first + i, is_raw, last, encoder.raw(i).size(), slot.size, out);
    encoder.count(slot.stored, stats);
    return {};
  }
};

struct ParallelExpand {
  const Header& header;
  Chain& chain;
  const std::vector<Block>& blocks;
  Bytes dst;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex{};
  Status status{};
  size_t failed_block = SIZE_MAX;

  Status expand(int worker, size_t i) const {
    const Block& block = blocks[i];
    const Bytes out = dst.subspan(i << header.block_log, block.raw_size);
    if (block.raw) {
      WPR_TRY(verify_block(header, block));
      if (!out.empty()) std::memcpy(out.data(), block.payload.data(), out.size());
      return {};
    }
    // Decoders stand any bytes, so the checksum comes second: the payload then lies in the cache,
    // where hashing costs a third. It has the last word on what is wrong.
    const Status result = chain.decode(worker, block.payload, out);
    WPR_TRY(verify_block(header, block));
    return result.ok() ? result : in_block(block.index, result);
  }

  void work(int worker) {
    for (size_t i; !failed && (i = next++) < blocks.size();) {
      const Status result = expand(worker, i);
      if (result.ok()) continue;
      failed = true;
      const std::lock_guard lock(mutex);
      if (i < failed_block) {
        failed_block = i;
        status = result;
      }
    }
  }
};

}  // namespace

Status Context::compress_blocks(const Header& header, Chain& chain, uint64_t first, ConstBytes src,
                                bool end, Bytes dst, size_t* written) {
  if (threads_ > 1 && src.size() > header.block_size())
    return compress_parallel(header, chain, first, src, end, dst, written);
  return compress_serial(header, chain, first, src, end, dst, written);
}

Status Context::compress_serial(const Header& header, Chain& chain, uint64_t first, ConstBytes src,
                                bool end, Bytes dst, size_t* written) {
  const Encoder encoder{header, chain, first, src, end, probe_ && chain.recipe().lossless()};
  size_t offset = 0;
  for (size_t i = 0; i < encoder.n_blocks(); ++i) {
    const bool last = encoder.is_last(i);
    const size_t head = head_size(header, last), room = dst.size() - offset;
    if (room < head) return encoder.no_room(i, head, room);
    const Bytes out = dst.subspan(offset + head);
    size_t size;
    Stored stored;
    WPR_TRY(encoder.encode(0, i, out, &size, &stored));
    if (stored != Stored::kCode) {
      if (out.size() < size) return encoder.no_room(i, head + size, room);
      if (size) std::memcpy(out.data(), encoder.raw(i).data(), size);
    }
    offset += seal_block(header, first + i, stored != Stored::kCode, last, encoder.raw(i).size(),
                         size, dst.data() + offset);
    encoder.count(stored, &stats_);
  }
  *written = offset;
  return {};
}

Status Context::compress_parallel(const Header& header, Chain& chain, uint64_t first,
                                  ConstBytes src, bool end, Bytes dst, size_t* written) {
  const Encoder encoder{header, chain, first, src, end, probe_ && chain.recipe().lossless()};
  const size_t n_blocks = encoder.n_blocks();
  const int workers = static_cast<int>(std::min<size_t>(static_cast<size_t>(threads_), n_blocks));
  if (slots_.size() < 2 * static_cast<size_t>(threads_))
    slots_ = std::vector<EncodeSlot>(2 * static_cast<size_t>(threads_));
  for (EncodeSlot& slot : slots_) slot.ready = false;  // one may be left over from a failure
  ParallelEncode job{.encoder = encoder, .dst = dst, .slots = slots_, .stats = &stats_};
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelEncode*>(it)->work(worker); }, &job);
  WPR_TRY(job.status);
  *written = job.offset;
  return {};
}

Status Context::expand_blocks(const Header& header, Chain& chain, Bytes dst) {
  ParallelExpand job{.header = header, .chain = chain, .blocks = blocks_, .dst = dst};
  const int workers =
      static_cast<int>(std::min<size_t>(static_cast<size_t>(threads_), blocks_.size()));
  pool_.run(
      workers, [](void* it, int worker) { static_cast<ParallelExpand*>(it)->work(worker); }, &job);
  return job.status;
}

}  // namespace wirepress
