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
  Status status;
  try {
    status = fill(filling, {tile, from}, static_cast<const std::byte*>(src), &times);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory to compress step %" PRIu64, step);
  }
  lock.lock();
  stats_.put_copy_seconds += times.copy;
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
  if (!first) return wait_for_memory(step, lock, filling);
  Status status;
  try {
    status = take_memory(step, lock, &at->second);
  } catch (const std::exception&) {
    status = fail(Code::kNoMemory, "no memory for step %" PRIu64, step);
  }
  changed_.notify_all();
  if (!status.ok()) {
    filling_.erase(at);
    return status;
  }
  *filling = &at->second;
  return {};
}

Status FrameStore::take_memory(uint64_t step, Lock& lock, Filling* filling) {
  filling->taken.assign(grid_.n_tiles(), false);
  if (!policy_) {
    WPR_TRY(room_in_memory(step));
    filling->memory = std::make_shared<Buffer>(head_.raw_size);
    stats_.buffer_bytes += head_.raw_size;
    return {};
  }
  const double began = now();
  Slot* slot = nullptr;
  WPR_TRY(wait_for_slot(lock, &slot));
  slot->step = step;
  slot->state = Slot::State::kFilling;
  policy_->begin(slot);
  filling->slot = slot;
  filling->waited = now() - began;
  return {};
}

// Another thread put the frame's first tile, and may be waiting for its memory.
Status FrameStore::wait_for_memory(uint64_t step, Lock& lock, Filling** filling) {
  const double began = now();
  auto found = filling_.end();
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

Status FrameStore::fill(Filling* filling, const CallerTile& tile, const std::byte* src,
                        Times* times) {
  if (filling->slot) return policy_->put_tile(callers_, tile, src, filling->slot, times);
  const double began = now();
  copy_to_frame(grid_, tile, src, filling->memory->data());
  times->copy = now() - began;
  return {};
}

void FrameStore::complete(uint64_t step, Filling* filling) {
  if (filling->memory) {
    keep_in_memory(step, std::move(filling->memory));
  } else {
    Slot* slot = filling->slot;
    policy_->complete(slot);
    slot->state = Slot::State::kToWrite;
    count_put(&frames_[step], filling->waited);
    slot->ticket = next_ticket_++;
    pending_.insert(slot->ticket);
    queue(slot);
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
  Strides to;
  WPR_TRY(strides_of(grid_, grid_.tile(tile), strides, &to));
  const Busy busy(*this);
  const double began = now();
  Entry* found = nullptr;
  WPR_TRY(find_written(step, lock, &found));
  if (reader_.is_new(step)) {
    follow(step);
    ++stats_.gets;
  }
  const Entry entry = *found;
  const CallerTile box{tile, to};
  auto* out = static_cast<std::byte*>(dst);
  if (!entry.is_raw_memory()) return tile_from_record(step, entry, box, began, lock, out);
  lock.unlock();
  const double middle = now();
  copy_from_frame(grid_, box, entry.memory->data(), out);
  const double copied = now() - middle;
  lock.lock();
  stats_.get_copy_seconds += copied;
  return {};
}

Status FrameStore::tile_from_record(uint64_t step, const Entry& entry, const CallerTile& tile,
                                    double began, Lock& lock, std::byte* dst) {
  Slot* slot = nullptr;
  // One that spilled lies in memory, and buffers may be short then.
  if (entry.place == Entry::Place::kFile) WPR_TRY(wait_for_reading(step, lock, &slot));
  count_get(step, now() - began);
  if (!slot) {
    lock.unlock();
    const Status status = tile_directly(step, entry, tile, dst);
    lock.lock();
    return status;
  }
  if (!slot->status.ok()) {
    const Status status = slot->status;
    forget(slot);
    return status;
  }
  ++slot->n_users;
  lock.unlock();
  Times times;
  const Status status = tile_from_slot(*slot, tile, dst, &times);
  lock.lock();
  stats_.get_copy_seconds += times.copy;
  times_.expand += times.expand;
  ++slot->n_got;
  leave(slot);
  if (slot->state == Slot::State::kFree) read_ahead(step);
  if (status.ok()) return {};
  return fail(status.code(), "step %" PRIu64 ": tile %" PRIu64 ": %s", step, tile.number,
              status.text());
}

// By way of a frame of its own: slow, and rare.
Status FrameStore::tile_directly(uint64_t step, const Entry& entry, const CallerTile& tile,
                                 std::byte* dst) {
  try {
    const Buffer frame(head_.raw_size);
    WPR_TRY(load_directly(step, entry, frame.data()));
    copy_from_frame(grid_, tile, frame.data(), dst);
    return {};
  } catch (const std::exception&) {
    return fail(Code::kNoMemory, "no memory to read step %" PRIu64, step);
  }
}

// A buffer that holds the frame; where it was not read ahead, a servant reads it now. None: frames
// that spilled, or that are put by tiles, have them all, and callers may get before they go on
// putting.
Status FrameStore::wait_for_reading(uint64_t step, Lock& lock, Slot** slot) {
  bool asked = false;
  while (open_) {
    Slot* here = ring_.reading(step);
    if (here && here->state == Slot::State::kReady) {
      if (!asked && here->n_got == 0 && here->n_users == 0) ++stats_.read_ahead;
      *slot = here;
      return {};
    }
    if (!here && (here = ring_.for_reading(reader_.last(), {}))) {
      asked = true;
      read_to(here, step, true);
    }
    if (ring_.all_put()) return {};
    changed_.wait(lock);
  }
  return fail(Code::kParameter, "the store is closed");
}

Status FrameStore::tile_from_slot(const Slot& slot, const CallerTile& tile, std::byte* dst,
                                  Times* times) {
  const double began = now();
  if (slot.tiles.empty()) {
    copy_from_frame(grid_, tile, slot.data.data(), dst);
    times->copy = now() - began;
    return {};
  }
  try {
    CallerCodecs::Loan codec(callers_);
    WPR_TRY(codec.borrow());
    const Status status = codec->expand_tile(grid_, grid_.tile(tile.number),
                                             slot.tiles[tile.number], dst, tile.strides);
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

}  // namespace wirepress::store
