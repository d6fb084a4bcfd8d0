// SPDX-License-Identifier: Apache-2.0
#include "store/ring.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "store/file.hpp"

namespace wirepress::store {

using State = Slot::State;

void Ring::make(size_t n_slots, size_t slot_size) {
  slot_size_ = slot_size;
  for (size_t i = 0; i < n_slots; ++i) slots_.emplace_back().data = Buffer(slot_size, kBlock);
}

bool Ring::all_gone() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.state == State::kGone; });
}

bool Ring::all_put() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) {
    return slot.state == State::kGone || slot.state == State::kFilling;
  });
}

Slot* Ring::reading(uint64_t step) {
  for (Slot& slot : slots_) {
    if ((slot.state == State::kReading || slot.state == State::kReady) && slot.step == step)
      return &slot;
  }
  return nullptr;
}

Slot* Ring::for_put() {
  Slot* idle = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == State::kFree) return &slot;
    if (!idle && slot.is_idle()) idle = &slot;
  }
  return idle;
}

Slot* Ring::for_reading(uint64_t last, std::span<const uint64_t> wanted) {
  Slot* idle = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == State::kFree) return &slot;
    if (!idle && slot.is_idle() && slot.step != last &&
        std::ranges::find(wanted, slot.step) == wanted.end())
      idle = &slot;
  }
  return idle;
}

Buffer Ring::take(Slot* slot, size_t size) {
  if (size < slot->data.size()) slot->data.shrink(size);
  slot->state = State::kGone;
  return std::exchange(slot->data, Buffer());
}

Slot* Ring::give_back() {
  for (Slot& slot : slots_) {
    if (slot.state != State::kGone) continue;
    try {
      slot.data = Buffer(slot_size_, kBlock);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    slot.state = State::kFree;
    return &slot;
  }
  return nullptr;
}

}  // namespace wirepress::store
