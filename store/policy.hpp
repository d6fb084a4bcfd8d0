// SPDX-License-Identifier: Apache-2.0
// What a buffer of the ring holds, and how it becomes a record and comes back: the difference
// between the policies of a store with a file.
#pragma once

#include <memory>

#include "store/caller_codecs.hpp"
#include "store/catalogue.hpp"
#include "store/ring.hpp"
#include "wirepress/store.h"

namespace wirepress::store {

// A tile in the memory of a caller.
struct CallerTile {
  uint64_t number;
  const Strides& strides;
};

// Policy disk: buffers and records hold raw frames. Its functions may run in several threads at the
// same time, each slot and codec in one; tiles of one slot in several.
class Policy {
 public:
  Policy(const Grid& grid, const Head& head) : grid_(grid), raw_size_(head.raw_size) {}
  virtual ~Policy() = default;
  // `grid` must outlive it.
  static std::unique_ptr<Policy> make(wpr_store_policy policy, const Grid& grid, const Head& head);

  // Bytes of a buffer; direct: frames are read past the page cache, too.
  virtual size_t slot_size(const Codec&, bool /*direct*/) const { return raw_size_; }
  // Whether callers compress tiles themselves: a whole frame is put tile by tile then.
  virtual bool packs_tiles() const { return false; }

  // A slot's frame comes by tiles: before the first one, for each, after the last one.
  virtual void begin(Slot*) const {}
  virtual Status put_tile(CallerCodecs& callers, const CallerTile& tile, const std::byte* src,
                          Slot* slot, Times* times) const;
  virtual void complete(Slot*) const {}

  // The record of a slot's frame. The payload lies in the slot or in the codec.
  virtual Status pack(Codec&, Slot& slot, Kind* kind, ConstBytes* payload) const;
  // Reads the record's payload to the slot where it is served from there; *done says whether.
  virtual Status read(Codec&, const Source&, const Entry&, Slot*, Times*, bool* /*done*/) const {
    return {};
  }

 protected:
  const Grid& grid_;
  const uint64_t raw_size_;
};

void copy_to_frame(const Grid& grid, const CallerTile& tile, const std::byte* src,
                   std::byte* frame);
void copy_from_frame(const Grid& grid, const CallerTile& tile, const std::byte* frame,
                     std::byte* dst);

}  // namespace wirepress::store
