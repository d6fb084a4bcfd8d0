// SPDX-License-Identifier: Apache-2.0
// Frames put and got by tiles, from several threads. Policy in-worker compresses and expands in the
// caller's thread while the tile is in its cache; others copy a tile to or from the frame's buffer.
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <exception>

#include "store/frame_store.hpp"

namespace wirepress::store {
namespace {

Status no_such_tile(uint64_t tile, uint64_t n_tiles) {
  return fail(Code::kParameter, "tile %" PRIu64 ": a frame of this store has %" PRIu64, tile,
              n_tiles);
}

}  // namespace

// A call that others must wait for before they take frames away; made and ended under the mutex.
class FrameStore::Busy {
 public:
  explicit Busy(FrameStore& store) : store_(store) { ++store_.n_busy_; }
  ~Busy() {
    if (--store_.n_busy_ == 0 && !store_.open_) store_.changed_.notify_all();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  FrameStore& store_;
};

struct FrameStore::Borrowed {
  explicit Borrowed(FrameStore& of) : store(of) {}
  ~Borrowed() {
    if (codec) store.give_back(codec);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  FrameStore& store;
  CallerCodec* codec = nullptr;
};

Status FrameStore::tile_at(uint64_t tile, wpr_store_tile* out) {
  if (tile >= grid_.n_tiles()) return no_such_tile(tile, grid_.n_tiles());
  const Tile found = grid_.tile(tile);
  *out = {};
  out->raw_size = found.size;
  uint64_t rest = found.offset;
  const Strides& strides = grid_.strides();
  const auto n = static_cast<size_t>(grid_.n_dims());
  for (size_t i = 0; i < n; ++i) {
    const uint64_t stride = strides.bytes[WPR_MAX_DIMS - n + i];
    out->first[i] = rest / stride;
    rest %= stride;
    out->shape[i] = grid_.shape_of(found)[i];
  }
  return {};
}

// ---- writing ------------------------------------------------------------------------------

Status FrameStore::put_tile(uint64_t step, uint64_t tile, const void* src,
                            const uint64_t* strides) {
  Lock lock(mutex_);
  WPR_TRY(check_put(step, src));
  if (tile >= grid_.n_tiles()) return no_such_tile(tile, grid_.n_tiles());
  Strides from;
  WPR_TRY(strides_of(grid_, grid_.tile(tile), strides, &from));
  const Busy busy(*this);
  Filling* filling = nullptr;
  WPR_TRY(begin_frame(step, lock, &filling));
  if (filling->taken[tile])
    return fail(Code::kParameter, "step %" PRIu64 ": tile %" PRIu64 " was put already", step, tile);
  filling->taken[tile] = true;
  lock.unlock();
  Times times;
  double copied = 0;
  Status status;
  try {
    status = fill(filling, tile, static_cast<const std::byte*>(src), from, &times, &copied);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to compress step %" PRIu64, step);
  }
  lock.lock();
  stats_.put_copy_seconds += copied;
  times_.compress += times.compress;
  if (!status.ok()) {
    filling->taken[tile] = false;
    return fail(status.code(), "step %" PRIu64 ": tile %" PRIu64 ": %s", step, tile, status.text());
  }
  if (++filling->n_done == grid_.n_tiles()) complete(step, filling);
  return {};
}

// The frame that a step's tiles go to; its first tile makes it.
Status FrameStore::begin_frame(uint64_t step, Lock& lock, Filling** filling) {
  const auto [at, first] = filling_.try_emplace(step);
  if (!first) {  // another thread may be waiting for its buffer
    const double began = now();
    auto found = at;
    changed_.wait(lock, [&] {
      found = filling_.find(step);
      return found == filling_.end() || found->second.ready();
    });
    if (found != filling_.end()) {
      found->second.waited = std::max(found->second.waited, now() - began);
      *filling = &found->second;
      return {};
    }
    if (!broken_.ok()) return broken_;
    return fail(Code::kParameter, "step %" PRIu64 " was not taken", step);
  }
  Status status;
  try {
    at->second.taken.assign(grid_.n_tiles(), false);
    if (policy_ == WPR_STORE_MEMORY) {
      status = room_in_memory(step);
      if (status.ok()) at->second.memory = std::make_shared<Buffer>(head_.raw_size);
    } else {
      const double began = now();
      Slot* slot = nullptr;
      status = wait_for_slot(lock, &slot);
      if (slot) {
        slot->step = step;
        slot->state = Slot::State::kFilling;
        slot->used = tiles_head_size(grid_.n_tiles());
        at->second.slot = slot;
        at->second.waited = now() - began;
      }
    }
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory for step %" PRIu64, step);
  }
  changed_.notify_all();
  if (!status.ok()) {
    filling_.erase(at);
    return status;
  }
  if (at->second.memory) stats_.buffer_bytes += head_.raw_size;
  *filling = &at->second;
  return {};
}

Status FrameStore::fill(Filling* filling, uint64_t tile, const std::byte* src,
                        const Strides& strides, Times* times, double* copied) {
  const Tile box = grid_.tile(tile);
  const double began = now();
  if (policy_ != WPR_STORE_IN_WORKER) {
    std::byte* frame = filling->slot ? filling->slot->data.data() : filling->memory->data();
    copy_box(box.box, grid_.element_size(), src, strides, frame + box.offset, grid_.strides());
    *copied = now() - began;
    return {};
  }
  Borrowed caller(*this);
  WPR_TRY(borrow(&caller.codec));
  ConstBytes payload;
  WPR_TRY(caller.codec->codec.compress_tile(grid_, box, src, strides, &payload));
  std::byte* frame = filling->slot->data.data();
  const size_t at = filling->slot->used.fetch_add(payload.size());
  std::memcpy(frame + at, payload.data(), payload.size());
  write_tile_entry(tile, at, payload.size(), frame);
  times->compress = now() - began;
  return {};
}

void FrameStore::complete(uint64_t step, Filling* filling) {
  if (filling->memory) {
    keep_in_memory(step, std::move(filling->memory));
  } else {
    Slot* slot = filling->slot;
    if (policy_ == WPR_STORE_IN_WORKER) write_tiles_head(grid_, slot->data.data());
    slot->state = Slot::State::kToWrite;
    entries_[step].put_wait = filling->waited;
    count_put_wait(filling->waited);
    ++stats_.puts;
    slot->ticket = next_ticket_++;
    pending_.insert(slot->ticket);
    to_write_.push_back(slot);
    work_.notify_one();
  }
  filling_.erase(step);
}

Status FrameStore::put_by_tiles(uint64_t step, const void* src) {
  const std::byte* frame = static_cast<const std::byte*>(src);
  uint64_t strides[WPR_MAX_DIMS] = {};
  const auto n = static_cast<size_t>(grid_.n_dims());
  std::copy_n(grid_.strides().bytes + (WPR_MAX_DIMS - n), n, strides);
  for (uint64_t tile = 0; tile < grid_.n_tiles(); ++tile)
    WPR_TRY(put_tile(step, tile, frame + grid_.tile(tile).offset, strides));
  return {};
}

// A frame that never became whole is none.
Status FrameStore::drop_incomplete() {
  Status status;
  for (auto& [step, filling] : filling_) {
    status = fail(Code::kParameter,
                  "step %" PRIu64 " is lost: %" PRIu64 " of its %" PRIu64 " tiles were put", step,
                  filling.n_done, grid_.n_tiles());
    if (filling.slot) filling.slot->state = Slot::State::kFree;
    if (filling.memory) stats_.buffer_bytes -= head_.raw_size;
    ++stats_.dropped;
  }
  filling_.clear();
  return status;
}

// ---- reading ------------------------------------------------------------------------------

Status FrameStore::get_tile(uint64_t step, uint64_t tile, void* dst, const uint64_t* strides) {
  Lock lock(mutex_);
  if (!open_) return fail(Code::kParameter, "the store is closed");
  if (!dst) return fail(Code::kParameter, "step %" PRIu64 ": dst is NULL", step);
  if (tile >= grid_.n_tiles()) return no_such_tile(tile, grid_.n_tiles());
  const Tile box = grid_.tile(tile);
  Strides to;
  WPR_TRY(strides_of(grid_, box, strides, &to));
  const Busy busy(*this);
  const double began = now();
  Entries::iterator found;
  WPR_TRY(find_written(step, lock, &found));
  if (!got_ || last_got_ != step) {
    follow(step);
    ++stats_.gets;
  }
  auto* out = static_cast<std::byte*>(dst);
  Times times;
  double copied = 0;
  Status status;
  if (found->second.place == Entry::Place::kMemory && found->second.kind == Kind::kRaw) {
    const std::shared_ptr<const Buffer> memory = found->second.memory;
    lock.unlock();
    const double middle = now();
    copy_box(box.box, grid_.element_size(), memory->data() + box.offset, grid_.strides(), out, to);
    copied = now() - middle;
    lock.lock();
  } else {
    const Entry entry = found->second;
    Slot* slot = nullptr;
    // One that spilled lies in memory, and buffers may be short then.
    if (entry.place == Entry::Place::kFile) WPR_TRY(wait_for_reading(step, lock, &slot));
    count_get(step, now() - began);
    if (!slot) {
      lock.unlock();
      status = tile_directly(step, entry, box, out, to);
      lock.lock();
      return status;
    }
    if (!slot->status.ok()) {
      status = slot->status;
      forget(slot);
      return status;
    }
    ++slot->n_users;
    lock.unlock();
    status = tile_from_slot(slot, tile, out, to, &times, &copied);
    lock.lock();
    ++slot->n_got;
    leave(slot);
    if (slot->state == Slot::State::kFree && direction_ && open_) read_ahead(step, direction_);
  }
  stats_.get_copy_seconds += copied;
  times_.expand += times.expand;
  if (status.ok()) return {};
  return fail(status.code(), "step %" PRIu64 ": tile %" PRIu64 ": %s", step, tile, status.text());
}

// By way of a frame of its own: slow, and rare.
Status FrameStore::tile_directly(uint64_t step, const Entry& entry, const Tile& tile,
                                 std::byte* dst, const Strides& strides) {
  try {
    const Buffer frame(head_.raw_size);
    WPR_TRY(load_directly(step, entry, frame.data()));
    copy_box(tile.box, grid_.element_size(), frame.data() + tile.offset, grid_.strides(), dst,
             strides);
    return {};
  } catch (const std::exception&) {
    return fail(Code::kNoMemory, "no memory to read step %" PRIu64, step);
  }
}

// A buffer that holds the frame; where it was not read ahead, a servant reads it now. None: the
// memory of all went with spilled frames.
Status FrameStore::wait_for_reading(uint64_t step, Lock& lock, Slot** slot) {
  bool asked = false;
  while (open_) {
    Slot* here = slot_of(step);
    if (here && here->state == Slot::State::kReady) {
      if (!asked && here->n_got == 0 && here->n_users == 0) ++stats_.read_ahead;
      *slot = here;
      return {};
    }
    if (!here && (here = slot_for_reading({}))) {
      asked = true;
      here->step = step;
      here->state = Slot::State::kReading;
      to_read_.push_front(here);
      work_.notify_one();
    }
    const auto gone = [](const Slot& each) { return each.state == Slot::State::kGone; };
    if (std::all_of(slots_.begin(), slots_.end(), gone)) return {};
    changed_.wait(lock);
  }
  return fail(Code::kParameter, "the store is closed");
}

Status FrameStore::tile_from_slot(Slot* slot, uint64_t tile, std::byte* dst, const Strides& strides,
                                  Times* times, double* copied) {
  const Tile box = grid_.tile(tile);
  const double began = now();
  if (slot->tiles.empty()) {
    copy_box(box.box, grid_.element_size(), slot->data.data() + box.offset, grid_.strides(), dst,
             strides);
    *copied = now() - began;
    return {};
  }
  try {
    Borrowed caller(*this);
    WPR_TRY(borrow(&caller.codec));
    const Status status =
        caller.codec->codec.expand_tile(grid_, box, slot->tiles[tile], dst, strides);
    times->expand = now() - began;
    return status;
  } catch (const std::exception&) {
    return fail(Code::kNoMemory, "no memory to expand it");
  }
}

// One user of a buffer less; got by all tiles, it is free.
void FrameStore::leave(Slot* slot) {
  if (--slot->n_users > 0 || slot->n_got < grid_.n_tiles()) return;
  slot->state = Slot::State::kFree;
  changed_.notify_all();
}

// What could not be read is tried again by who asks next.
void FrameStore::forget(Slot* slot) {
  if (slot->n_users > 0) return;
  slot->state = Slot::State::kFree;
  changed_.notify_all();
}

// ---- codecs of the callers ----------------------------------------------------------------

Status FrameStore::borrow(CallerCodec** codec) {
  const std::thread::id me = std::this_thread::get_id();
  const std::lock_guard lock(callers_mutex_);
  CallerCodec* mine = nullptr;
  for (CallerCodec& caller : callers_) {
    if (caller.busy) continue;
    if (!mine || caller.owner == me) mine = &caller;
    if (caller.owner == me) break;
  }
  // Another thread's is taken only where there are more than any program has workers.
  constexpr size_t kMost = 64;
  if (!mine || (mine->owner != me && callers_.size() < kMost)) {
    mine = &callers_.emplace_back();
    const Status status = mine->codec.open(head_, settings());
    if (!status.ok()) {
      callers_.pop_back();
      return status;
    }
  }
  mine->owner = me;
  mine->busy = true;
  *codec = mine;
  return {};
}

void FrameStore::give_back(CallerCodec* codec) {
  const std::lock_guard lock(callers_mutex_);
  codec->busy = false;
}

}  // namespace wirepress::store
