// SPDX-License-Identifier: Apache-2.0
#include "store/format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cinttypes>

#include "base/bytes.hpp"

namespace wirepress::store {
namespace {

using Magic = std::array<char, 8>;
constexpr Magic kHeadMagic = {'W', 'P', 'R', 'S', 'T', 'O', 'R', 'E'};
constexpr Magic kTrailerMagic = {'W', 'P', 'R', 'I', 'N', 'D', 'E', 'X'};

// Reads values one after the other; false: the bytes end before.
template <typename... Values>
bool read_all(Reader& reader, Values*... values) {
  return (reader.read(values) && ...);
}

}  // namespace

uint64_t checksum(ConstBytes bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Status measure(Head* head) {
  if (head->dtype < 0 || head->dtype > WPR_COMPLEX128)
    return fail(Code::kUnsupported, "dtype %d is not known", static_cast<int>(head->dtype));
  if (head->n_dims < 0 || head->n_dims > WPR_MAX_DIMS)
    return fail(Code::kParameter, "%d dimensions: a frame has 0 to %d", head->n_dims, WPR_MAX_DIMS);
  uint64_t size = dtype_size(static_cast<DType>(head->dtype));
  for (int i = 0; i < head->n_dims; ++i) {
    if (__builtin_mul_overflow(size, head->shape[i], &size) || size > kMostRaw)
      return fail(Code::kParameter, "the shape has more than 2^48 bytes");
  }
  if (size == 0) return fail(Code::kParameter, "the shape has no elements");
  head->raw_size = size;
  return {};
}

void write_head(const Head& head, std::byte* dst) {
  Writer writer({dst, kHeadSize});
  writer.write(kHeadMagic);
  writer.write(kVersion);
  writer.write(uint32_t{0});
  writer.write(head.id);
  writer.write(static_cast<uint8_t>(head.dtype));
  writer.write(static_cast<uint8_t>(head.n_dims));
  writer.write(std::array<uint8_t, 6>{});
  for (int i = 0; i < WPR_MAX_DIMS; ++i)
    writer.write(i < head.n_dims ? head.shape[i] : uint64_t{0});
  writer.write(checksum({dst, writer.position()}, 0));
}

Status read_head(ConstBytes bytes, Head* head) {
  Reader reader(bytes);
  Magic magic;
  if (reader.read(&magic) && magic != kHeadMagic)
    return fail(Code::kCorrupt, "not a frame store: it does not begin with WPRSTORE");
  if (bytes.size() < kHeadSize)
    return fail(Code::kTruncated, "the head of a store has %zu bytes, the file %zu", kHeadSize,
                bytes.size());
  uint32_t version, flags;
  uint8_t dtype, n_dims;
  std::array<uint8_t, 6> more_flags;
  uint64_t shape[WPR_MAX_DIMS], sum;
  read_all(reader, &version, &flags, &head->id, &dtype, &n_dims, &more_flags, &shape, &sum);
  if (version != kVersion)
    return fail(Code::kUnsupported,
                "store version %" PRIu32 "; this library reads version %" PRIu32, version,
                kVersion);
  if (sum != checksum(bytes.first(kHeadSize - sizeof sum), 0))
    return fail(Code::kChecksum, "the head's checksum does not match");
  if (flags != 0 || more_flags != std::array<uint8_t, 6>{})
    return fail(Code::kUnsupported, "the head has flags that this library does not know");
  if (dtype > WPR_COMPLEX128) return fail(Code::kUnsupported, "dtype %d is not known", dtype);
  head->dtype = static_cast<wpr_dtype>(dtype);
  head->n_dims = n_dims;
  std::copy_n(shape, WPR_MAX_DIMS, head->shape);
  return measure(head);
}

void write_record(const Record& record, uint64_t id, uint64_t offset, std::byte* dst) {
  Writer writer({dst, kRecordSize});
  writer.write(kRecordMagic);
  writer.write(record.kind);
  writer.write(std::array<uint8_t, 3>{});
  for (const uint64_t value :
       {record.sequence, record.step, record.raw_size, record.stored_size, record.checksum})
    writer.write(value);
  writer.write(checksum({dst, writer.position()}, id + offset));
}

bool read_record(ConstBytes bytes, const Head& head, uint64_t offset, uint64_t file_size,
                 Record* record) {
  Reader reader(bytes);
  uint32_t magic;
  uint8_t kind;
  std::array<uint8_t, 3> flags;
  uint64_t sum;
  if (!read_all(reader, &magic, &kind, &flags, &record->sequence, &record->step, &record->raw_size,
                &record->stored_size, &record->checksum, &sum))
    return false;
  if (magic != kRecordMagic ||
      sum != checksum(bytes.first(kRecordSize - sizeof sum), head.id + offset) || kind < 1 ||
      kind > 4 || flags != std::array<uint8_t, 3>{})
    return false;
  record->kind = static_cast<Kind>(kind);
  if (offset + kRecordSize > file_size || record->stored_size > file_size - offset - kRecordSize)
    return false;
  if (record->kind == Kind::kIndex) return record->raw_size == record->stored_size;
  if (record->kind == Kind::kRaw && record->stored_size != head.raw_size) return false;
  return record->raw_size == head.raw_size;
}

std::vector<std::byte> write_index(std::span<const IndexEntry> entries, uint64_t id,
                                   uint64_t offset) {
  std::vector<std::byte> payload(entries.size() * kIndexEntrySize + kTrailerSize);
  Writer writer(payload);
  for (const IndexEntry& entry : entries) {
    for (const uint64_t value : {entry.step, entry.offset, entry.stored_size}) writer.write(value);
  }
  const size_t trailer = writer.position();
  writer.write(kTrailerMagic);
  writer.write(offset);
  writer.write(checksum({payload.data() + trailer, 16}, id));
  return payload;
}

bool read_trailer(ConstBytes bytes, uint64_t id, uint64_t* offset) {
  Reader reader(bytes);
  Magic magic;
  uint64_t sum;
  return bytes.size() == kTrailerSize && read_all(reader, &magic, offset, &sum) &&
         magic == kTrailerMagic && sum == checksum(bytes.first(16), id);
}

bool read_index(ConstBytes payload, uint64_t end, std::vector<IndexEntry>* entries) {
  if (payload.size() < kTrailerSize) return false;
  const size_t size = payload.size() - kTrailerSize;
  if (size % kIndexEntrySize != 0) return false;
  entries->clear();
  entries->reserve(size / kIndexEntrySize);
  Reader reader(payload.first(size));
  for (IndexEntry entry; read_all(reader, &entry.step, &entry.offset, &entry.stored_size);) {
    if (!entries->empty() && entry.step <= entries->back().step) return false;
    if (entry.offset < kHeadSize || entry.offset > end || end - entry.offset < kRecordSize ||
        entry.stored_size > end - entry.offset - kRecordSize)
      return false;
    entries->push_back(entry);
  }
  return true;
}

}  // namespace wirepress::store
