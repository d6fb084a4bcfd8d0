// SPDX-License-Identifier: Apache-2.0
#include "store/format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cinttypes>
#include <cstring>

namespace wirepress::store {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stores are little endian");

constexpr char kHeadMagic[8] = {'W', 'P', 'R', 'S', 'T', 'O', 'R', 'E'};
constexpr char kTrailerMagic[8] = {'W', 'P', 'R', 'I', 'N', 'D', 'E', 'X'};

template <typename T>
void put(std::byte* dst, size_t offset, T value) {
  std::memcpy(dst + offset, &value, sizeof value);
}

// The caller has checked that the span is as long as the structure that it reads.
template <typename T>
T get(ConstBytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
  return value;
}

bool is_zero(ConstBytes bytes) {
  for (const std::byte byte : bytes) {
    if (byte != std::byte{0}) return false;
  }
  return true;
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
  std::memset(dst, 0, kHeadSize);
  std::memcpy(dst, kHeadMagic, sizeof kHeadMagic);
  put(dst, 8, kVersion);
  put(dst, 16, head.id);
  put(dst, 24, static_cast<uint8_t>(head.dtype));
  put(dst, 25, static_cast<uint8_t>(head.n_dims));
  for (int i = 0; i < head.n_dims; ++i) put(dst, 32 + 8 * static_cast<size_t>(i), head.shape[i]);
  put(dst, kHeadSize - 8, checksum({dst, kHeadSize - 8}, 0));
}

Status read_head(ConstBytes bytes, Head* head) {
  if (bytes.size() >= sizeof kHeadMagic && std::memcmp(bytes.data(), kHeadMagic, 8) != 0)
    return fail(Code::kCorrupt, "not a frame store: it does not begin with WPRSTORE");
  if (bytes.size() < kHeadSize)
    return fail(Code::kTruncated, "the head of a store has %zu bytes, the file %zu", kHeadSize,
                bytes.size());
  const auto version = get<uint32_t>(bytes, 8);
  if (version != kVersion)
    return fail(Code::kUnsupported,
                "store version %" PRIu32 "; this library reads version %" PRIu32, version,
                kVersion);
  bytes = bytes.first(kHeadSize);
  if (get<uint64_t>(bytes, kHeadSize - 8) != checksum(bytes.first(kHeadSize - 8), 0))
    return fail(Code::kChecksum, "the head's checksum does not match");
  if (!is_zero(bytes.subspan(12, 4)) || !is_zero(bytes.subspan(26, 6)))
    return fail(Code::kUnsupported, "the head has flags that this library does not know");
  head->id = get<uint64_t>(bytes, 16);
  const auto dtype = get<uint8_t>(bytes, 24);
  if (dtype > WPR_COMPLEX128) return fail(Code::kUnsupported, "dtype %d is not known", dtype);
  head->dtype = static_cast<wpr_dtype>(dtype);
  head->n_dims = get<uint8_t>(bytes, 25);
  for (size_t i = 0; i < WPR_MAX_DIMS; ++i) head->shape[i] = get<uint64_t>(bytes, 32 + 8 * i);
  return measure(head);
}

void write_record(const Record& record, uint64_t id, uint64_t offset, std::byte* dst) {
  std::memset(dst, 0, kRecordSize);
  put(dst, 0, kRecordMagic);
  put(dst, 4, static_cast<uint8_t>(record.kind));
  put(dst, 8, record.sequence);
  put(dst, 16, record.step);
  put(dst, 24, record.raw_size);
  put(dst, 32, record.stored_size);
  put(dst, 40, record.checksum);
  put(dst, 48, checksum({dst, 48}, id + offset));
}

bool read_record(ConstBytes bytes, const Head& head, uint64_t offset, uint64_t file_size,
                 Record* record) {
  if (bytes.size() < kRecordSize || get<uint32_t>(bytes, 0) != kRecordMagic) return false;
  if (get<uint64_t>(bytes, 48) != checksum(bytes.first(48), head.id + offset)) return false;
  const auto kind = get<uint8_t>(bytes, 4);
  if (kind < 1 || kind > 4 || !is_zero(bytes.subspan(5, 3))) return false;
  record->kind = static_cast<Kind>(kind);
  record->sequence = get<uint64_t>(bytes, 8);
  record->step = get<uint64_t>(bytes, 16);
  record->raw_size = get<uint64_t>(bytes, 24);
  record->stored_size = get<uint64_t>(bytes, 32);
  record->checksum = get<uint64_t>(bytes, 40);
  if (offset + kRecordSize > file_size || record->stored_size > file_size - offset - kRecordSize)
    return false;
  if (record->kind == Kind::kIndex) return record->raw_size == record->stored_size;
  if (record->kind == Kind::kRaw && record->stored_size != head.raw_size) return false;
  return record->raw_size == head.raw_size;
}

std::vector<std::byte> write_index(std::span<const IndexEntry> entries, uint64_t id,
                                   uint64_t offset) {
  std::vector<std::byte> payload(entries.size() * kIndexEntrySize + kTrailerSize);
  std::byte* at = payload.data();
  for (const IndexEntry& entry : entries) {
    put(at, 0, entry.step);
    put(at, 8, entry.offset);
    put(at, 16, entry.stored_size);
    at += kIndexEntrySize;
  }
  std::memcpy(at, kTrailerMagic, sizeof kTrailerMagic);
  put(at, 8, offset);
  put(at, 16, checksum({at, 16}, id));
  return payload;
}

bool read_trailer(ConstBytes bytes, uint64_t id, uint64_t* offset) {
  if (bytes.size() != kTrailerSize || std::memcmp(bytes.data(), kTrailerMagic, 8) != 0)
    return false;
  *offset = get<uint64_t>(bytes, 8);
  return get<uint64_t>(bytes, 16) == checksum(bytes.first(16), id);
}

bool read_index(ConstBytes payload, uint64_t end, std::vector<IndexEntry>* entries) {
  if (payload.size() < kTrailerSize) return false;
  const size_t size = payload.size() - kTrailerSize;
  if (size % kIndexEntrySize != 0) return false;
  entries->clear();
  entries->reserve(size / kIndexEntrySize);
  for (size_t at = 0; at < size; at += kIndexEntrySize) {
    const IndexEntry entry{get<uint64_t>(payload, at), get<uint64_t>(payload, at + 8),
                           get<uint64_t>(payload, at + 16)};
    if (!entries->empty() && entry.step <= entries->back().step) return false;
    if (entry.offset < kHeadSize || entry.offset > end || end - entry.offset < kRecordSize ||
        entry.stored_size > end - entry.offset - kRecordSize)
      return false;
    entries->push_back(entry);
  }
  return true;
}

}  // namespace wirepress::store
