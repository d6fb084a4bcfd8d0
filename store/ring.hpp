// SPDX-License-Identifier: Apache-2.0
// The buffers of a store, of one frame each: a put fills one, a servant writes it; a servant reads
// into one, gets take from it. The store's mutex guards it, but for the bytes in buffers.
#pragma once

#include <atomic>
#include <deque>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "store/format.hpp"

namespace wirepress::store {

struct Slot {
  // kGone: its memory holds a frame that the file did not take.
  enum class State { kFree, kFilling, kToWrite, kReading, kReady, kGone } state = State::kFree;
  uint64_t step = 0;
  uint64_t ticket = 0;  // of the put
  Buffer data;
  Status status;                  // of reading
  std::atomic<size_t> used{0};    // of a payload of tiles, while it is made
  std::vector<ConstBytes> tiles;  // of a payload that was read; none: raw bytes
  size_t n_users = 0;             // callers that copy or expand out of it
  uint64_t n_got = 0;             // tiles that were got from it

  // Ready, and nobody takes from it.
  bool is_idle() const { return state == State::kReady && n_users == 0; }
};

class Ring {
 public:
  // Throws std::bad_alloc.
  void make(size_t n_slots, size_t slot_size);
  size_t size() const { return slots_.size(); }
  size_t slot_size() const { return slot_size_; }
  std::deque<Slot>& slots() { return slots_; }
  bool all_gone() const;
  // No slot comes free without a caller's putting more.
  bool all_put() const;

  // The slot that is read, or was read, for a step; nullptr: none.
  Slot* reading(uint64_t step);
  // For a put: a free slot, else an idle one; nullptr: none.
  Slot* for_put();
  // For reading: a free slot, else an idle one whose step is neither `last` nor `wanted`.
  Slot* for_reading(uint64_t last, std::span<const uint64_t> wanted);

  // Takes a slot's memory, shrunk to `size` bytes, away.
  Buffer take(Slot* slot, size_t size);
  // Gives one slot memory again; nullptr: all have some, or there is none to be had.
  Slot* give_back();

 private:
  std::deque<Slot> slots_;
  size_t slot_size_ = 0;
};

}  // namespace wirepress::store
