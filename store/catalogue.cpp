// SPDX-License-Identifier: Apache-2.0
#include "store/catalogue.hpp"

#include <iterator>

namespace wirepress::store {

Entry* Catalogue::find(uint64_t step) {
  const auto found = entries_.find(step);
  return found == entries_.end() ? nullptr : &found->second;
}

int Catalogue::direction(uint64_t step, uint64_t next) const {
  for (const int direction : {-1, 1}) {
    const auto nearest = neighbours(step, direction, 1);
    if (!nearest.empty() && nearest[0] == next) return direction;
  }
  return 0;
}

std::vector<uint64_t> Catalogue::neighbours(uint64_t step, int direction, size_t most) const {
  std::vector<uint64_t> steps;
  auto here = entries_.find(step);
  while (here != entries_.end() && steps.size() < most) {
    if (direction < 0 && here == entries_.begin()) break;
    here = direction < 0 ? std::prev(here) : std::next(here);
    if (here != entries_.end()) steps.push_back(here->first);
  }
  return steps;
}

std::vector<IndexEntry> Catalogue::in_file() const {
  std::vector<IndexEntry> index;
  for (const auto& [step, entry] : entries_) {
    if (entry.place == Entry::Place::kFile)
      index.push_back({step, entry.offset, entry.stored_size});
  }
  return index;
}

}  // namespace wirepress::store
