// SPDX-License-Identifier: Apache-2.0
// The bytes of a store (spec/store.md): its head, the heads of records, the trailer of an index.
// Parsing trusts nothing: sizes are checked against the file before anybody allocates.
#pragma once

#include <vector>

#include "base/kernel.hpp"
#include "wirepress/wirepress.h"

namespace wirepress::store {

constexpr uint32_t kVersion = 1;
constexpr size_t kHeadSize = 72;
constexpr size_t kRecordSize = 56;
constexpr size_t kTrailerSize = 24;
constexpr size_t kIndexEntrySize = 24;
constexpr uint32_t kRecordMagic = 0x72525057;  // "WPRr"
constexpr uint64_t kMostRaw = uint64_t{1} << 48;

enum class Kind : uint8_t { kRaw = 1, kFrame = 2, kIndex = 3, kTiles = 4 };

struct Head {
  uint64_t id = 0;  // random: no other store's record is valid in this one
  wpr_dtype dtype = WPR_BYTES;
  int n_dims = 0;
  uint64_t shape[WPR_MAX_DIMS] = {};
  uint64_t raw_size = 0;  // of a frame; from dtype and shape
};

struct Record {
  Kind kind = Kind::kRaw;
  uint64_t sequence = 0, step = 0, raw_size = 0, stored_size = 0, checksum = 0;
};

struct IndexEntry {
  uint64_t step, offset, stored_size;
};

// Sets head->raw_size; fails on a type or a shape that no frame has.
Status measure(Head* head);

void write_head(const Head& head, std::byte* dst);  // kHeadSize bytes
Status read_head(ConstBytes bytes, Head* head);

// A head is valid at one offset of one store only: a copy of it elsewhere is no record.
void write_record(const Record& record, uint64_t id, uint64_t offset, std::byte* dst);
bool read_record(ConstBytes bytes, const Head& head, uint64_t offset, uint64_t file_size,
                 Record* record);

uint64_t checksum(ConstBytes bytes, uint64_t seed);

// The payload of an index: entries by step, then the trailer, the last bytes of a closed store.
std::vector<std::byte> write_index(std::span<const IndexEntry> entries, uint64_t id,
                                   uint64_t offset);
// Where a file's last kTrailerSize bytes say that its index record begins.
bool read_trailer(ConstBytes bytes, uint64_t id, uint64_t* offset);
// False: an entry that cannot be. end is where the index record begins.
bool read_index(ConstBytes payload, uint64_t end, std::vector<IndexEntry>* entries);

}  // namespace wirepress::store
