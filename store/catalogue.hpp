// SPDX-License-Identifier: Apache-2.0
// Which steps a store has, and where the frame of each is. The store's mutex guards it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "store/format.hpp"

namespace wirepress::store {

// A frame: still to be written, a record of the file, or bytes in memory (policy memory: raw; one
// that the file did not take: its payload).
struct Entry {
  enum class Place { kPending, kFile, kMemory } place = Place::kPending;
  uint64_t offset = 0, stored_size = 0;
  Kind kind = Kind::kRaw;
  std::shared_ptr<const Buffer> memory;
  double put_wait = 0, get_wait = 0;  // seconds

  uint64_t end() const { return offset + kRecordSize + stored_size; }  // of the record
  bool is_raw_memory() const { return place == Place::kMemory && kind == Kind::kRaw; }
};

class Catalogue {
 public:
  using Entries = std::map<uint64_t, Entry>;  // by step

  Entry* find(uint64_t step);  // nullptr: the store has no such step
  bool has(uint64_t step) const { return entries_.contains(step); }
  Entry& operator[](uint64_t step) { return entries_[step]; }  // made where there is none
  void erase(uint64_t step) { entries_.erase(step); }
  size_t size() const { return entries_.size(); }
  Entries& all() { return entries_; }

  // -1 or 1: `next` is the step before or behind `step`; 0: neither.
  int direction(uint64_t step, uint64_t next) const;
  // The steps before (-1) or behind (1) `step`, nearest first, at most `most`.
  std::vector<uint64_t> neighbours(uint64_t step, int direction, size_t most) const;
  // What an index names: the frames in the file, by step.
  std::vector<IndexEntry> in_file() const;

 private:
  Entries entries_;
};

}  // namespace wirepress::store
