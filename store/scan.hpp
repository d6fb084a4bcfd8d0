// SPDX-License-Identifier: Apache-2.0
// What a store's file holds: by its index, or by reading all of it.
#pragma once

#include <functional>
#include <vector>

#include "store/file.hpp"
#include "wirepress/store.h"

namespace wirepress::store {

struct Contents {
  Head head;
  std::vector<IndexEntry> entries;  // by step; good records only
  wpr_store_report report = {};
  uint64_t next_sequence = 0;
  bool from_index = false;
};

// Uses the index where the file ends with a good one, else scans.
Status load(const File& file, Contents* contents);

// Verifies every record's checksum. A damaged record is passed over and, where its head is damaged
// too, the next good head is looked for: what lies behind damage is found.
Status scan(const File& file, const std::function<void(const wpr_store_record&)>& row,
            Contents* contents);

// Appends an index record at `offset`.
Status append_index(File& file, const Head& head, std::span<const IndexEntry> entries,
                    uint64_t sequence, uint64_t offset);

}  // namespace wirepress::store
