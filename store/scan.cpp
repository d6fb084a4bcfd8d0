// SPDX-License-Identifier: Apache-2.0
#include "store/scan.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace wirepress::store {
namespace {

constexpr size_t kWindow = 1 << 20;
const std::function<void(const wpr_store_record&)> kNoRow;

Status load_head(const File& file, Contents* contents) {
  uint64_t size;
  WPR_TRY(file.size(&size));
  contents->report.file_size = size;
  std::byte bytes[kHeadSize];
  const size_t there = std::min<uint64_t>(size, kHeadSize);
  WPR_TRY(file.read(0, {bytes, there}));
  Status status = read_head({bytes, there}, &contents->head);
  if (!status.ok()) return fail(status.code(), "%s: %s", file.path(), status.text());
  return {};
}

// Reads the index of a file that ends with one; *found says whether.
Status load_index(const File& file, Contents* contents, bool* found) {
  const uint64_t size = contents->report.file_size;
  const uint64_t id = contents->head.id;
  if (size < kHeadSize + kRecordSize + kTrailerSize) return {};
  std::byte bytes[kRecordSize];
  uint64_t offset;
  WPR_TRY(file.read(size - kTrailerSize, {bytes, kTrailerSize}));
  if (!read_trailer({bytes, kTrailerSize}, id, &offset)) return {};
  if (offset < kHeadSize || offset > size - kRecordSize - kTrailerSize) return {};
  WPR_TRY(file.read(offset, bytes));
  Record record;
  if (!read_record(bytes, contents->head, offset, size, &record) || record.kind != Kind::kIndex ||
      record.stored_size != size - offset - kRecordSize)
    return {};
  std::vector<std::byte> payload(record.stored_size);
  WPR_TRY(file.read(offset + kRecordSize, payload));
  if (checksum(payload, id) != record.checksum || !read_index(payload, offset, &contents->entries))
    return {};
  contents->next_sequence = record.sequence + 1;
  *found = true;
  return {};
}

class Scan {
 public:
  Scan(const File& file, const std::function<void(const wpr_store_record&)>& row, Contents* out)
      : file_(file), row_(row), out_(*out), size_(out->report.file_size), window_(kWindow) {}

  Status run() {
    uint64_t offset = kHeadSize;
    out_.report.good_size = kHeadSize;
    bool in_gap = false;
    while (offset + kRecordSize <= size_) {
      Record record;
      bool good;
      WPR_TRY(head_at(offset, &record, &good));
      if (good) {
        in_gap = false;
        WPR_TRY(content(record, offset));
        offset += kRecordSize + record.stored_size;
        continue;
      }
      if (!in_gap) ++gaps_;
      in_gap = true;
      WPR_TRY(next_magic(offset + 1, &offset));
    }
    finish();
    return {};
  }

 private:
  Status head_at(uint64_t offset, Record* record, bool* good) {
    std::byte bytes[kRecordSize];
    WPR_TRY(file_.read(offset, bytes));
    *good = read_record(bytes, out_.head, offset, size_, record) &&
            record->sequence >= out_.next_sequence;
    return {};
  }

  // The first offset from here on where a record's magic stands; the end where there is none.
  Status next_magic(uint64_t from, uint64_t* offset) {
    while (from + kRecordSize <= size_) {
      const size_t n = std::min<uint64_t>(kWindow, size_ - from);
      WPR_TRY(file_.read(from, Bytes(window_).first(n)));
      const void* at = ::memmem(window_.data(), n, &kRecordMagic, sizeof kRecordMagic);
      if (at) {
        *offset = from + static_cast<uint64_t>(static_cast<const std::byte*>(at) - window_.data());
        return {};
      }
      from += n - (sizeof kRecordMagic - 1);
    }
    *offset = size_;
    return {};
  }

  Status verify(const Record& record, uint64_t offset, bool* good) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);  // else the reset believes a seed that stood there
    XXH3_64bits_reset_withSeed(&state, out_.head.id);
    uint64_t left = record.stored_size;
    for (uint64_t at = offset + kRecordSize; left > 0;) {
      const size_t n = std::min<uint64_t>(kWindow, left);
      WPR_TRY(file_.read(at, Bytes(window_).first(n)));
      XXH3_64bits_update(&state, window_.data(), n);
      at += n;
      left -= n;
    }
    *good = XXH3_64bits_digest(&state) == record.checksum;
    return {};
  }

  Status content(const Record& record, uint64_t offset) {
    bool good;
    WPR_TRY(verify(record, offset, &good));
    wpr_status status = good ? WPR_OK : WPR_CHECKSUM;
    if (good && record.kind != Kind::kIndex &&
        !found_.try_emplace(record.step, IndexEntry{record.step, offset, record.stored_size})
             .second)
      status = WPR_CORRUPT;  // a step that was there
    out_.next_sequence = record.sequence + 1;
    if (status == WPR_OK) {
      out_.report.good_size = offset + kRecordSize + record.stored_size;
      before_good_ = damaged_ + gaps_;
    } else {
      ++damaged_;
    }
    if (row_)
      row_({offset, record.sequence, record.step, record.stored_size, static_cast<int>(record.kind),
            status});
    return {};
  }

  void finish() {
    out_.report.torn_bytes = size_ - out_.report.good_size;
    out_.report.damaged = before_good_;  // what is behind the last good record is its tail
    for (const auto& [step, entry] : found_) out_.entries.push_back(entry);
    out_.report.n_frames = out_.entries.size();
  }

  const File& file_;
  const std::function<void(const wpr_store_record&)>& row_;
  Contents& out_;
  uint64_t size_;
  uint64_t damaged_ = 0, gaps_ = 0, before_good_ = 0;
  std::vector<std::byte> window_;
  std::map<uint64_t, IndexEntry> found_;
};

}  // namespace

Status load(const File& file, Contents* contents) {
  WPR_TRY(load_head(file, contents));
  WPR_TRY(load_index(file, contents, &contents->from_index));
  if (!contents->from_index) {
    contents->entries.clear();
    return Scan(file, kNoRow, contents).run();
  }
  contents->report.good_size = contents->report.file_size;
  contents->report.n_frames = contents->entries.size();
  contents->report.index = 1;
  return {};
}

Status scan(const File& file, const std::function<void(const wpr_store_record&)>& row,
            Contents* contents) {
  WPR_TRY(load_head(file, contents));
  bool index = false;
  WPR_TRY(load_index(file, contents, &index));
  contents->entries.clear();
  contents->next_sequence = 0;
  contents->report.index = index;
  return Scan(file, row, contents).run();
}

Status append_index(File& file, const Head& head, std::span<const IndexEntry> entries,
                    uint64_t sequence, uint64_t offset) {
  const std::vector<std::byte> payload = write_index(entries, head.id, offset);
  std::byte bytes[kRecordSize];
  const Record record{Kind::kIndex,   sequence,       0,
                      payload.size(), payload.size(), checksum(payload, head.id)};
  write_record(record, head.id, offset, bytes);
  return file.write(offset, bytes, payload);
}

}  // namespace wirepress::store
