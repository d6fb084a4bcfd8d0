// SPDX-License-Identifier: Apache-2.0
#include "store/codec.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstring>

namespace wirepress::store {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Status Codec::open(const Head& head, const char* recipe) {
  head_ = head;
  wpr_status status = wpr_create(&context_);
  if (!context_) return fail(WPR_NO_MEMORY, "no memory");
  // A servant is a thread, and a record's checksum covers the frame in it.
  if (status == WPR_OK) status = wpr_set(context_, "threads", "1");
  if (status == WPR_OK) status = wpr_set(context_, "checksum", "off");
  if (status == WPR_OK && recipe) status = wpr_set(context_, "recipe", recipe);
  int lossless;
  if (status == WPR_OK)
    status = wpr_lossless(context_, wpr_get(context_, "recipe"), head.dtype, &lossless);
  if (status != WPR_OK) return fail(status, "%s", wpr_error(context_));
  bound_ = wpr_bound(context_, head.raw_size);
  return {};
}

std::byte* Codec::staging(size_t size) {
  if (staging_.size() < size) {
    staging_ = Buffer();  // not both at once
    staging_ = Buffer(size);
  }
  return staging_.data();
}

Status Codec::compress(const std::byte* raw, ConstBytes* payload) {
  std::byte* dst = staging(bound_);
  size_t written = 0;
  const wpr_status status = wpr_compress_array(context_, raw, head_.dtype, head_.n_dims,
                                               head_.shape, dst, bound_, &written);
  if (status != WPR_OK) return fail(status, "%s", wpr_error(context_));
  *payload = {dst, written};
  return {};
}

Status Codec::expand(ConstBytes payload, std::byte* raw) {
  wpr_info info;
  size_t written = 0;
  wpr_status status = wpr_inspect(context_, payload.data(), payload.size(), &info);
  if (status != WPR_OK) return fail(status, "%s", wpr_error(context_));
  if (info.dtype != head_.dtype || info.n_dims != head_.n_dims ||
      !std::equal(info.shape, info.shape + head_.n_dims, head_.shape))
    return fail(WPR_CORRUPT, "the frame has another type or shape than the store");
  status = wpr_decompress(context_, payload.data(), payload.size(), raw, head_.raw_size, &written);
  if (status != WPR_OK) return fail(status, "%s", wpr_error(context_));
  if (written != head_.raw_size)
    return fail(WPR_CORRUPT, "the frame holds %zu bytes, not %" PRIu64, written, head_.raw_size);
  return {};
}

Status Codec::load(const File& file, uint64_t step, uint64_t offset, uint64_t file_size,
                   std::byte* raw, Times* times) {
  const double began = now();
  std::byte bytes[kRecordSize];
  WPR_STORE_TRY(file.read(offset, bytes));
  Record record;
  if (!read_record(bytes, head_, offset, file_size, &record) || record.step != step ||
      record.kind == Kind::kIndex)
    return fail(WPR_CHECKSUM, "%s: step %" PRIu64 ": the record's head at %" PRIu64 " is damaged",
                file.path(), step, offset);
  const bool packed = record.kind == Kind::kFrame;
  // Blocks of 1 KiB cost 8 bytes each, and no frame costs more.
  const uint64_t most = head_.raw_size + head_.raw_size / 64 + WPR_MAX_HEADER + 64;
  if (packed && record.stored_size > most)
    return fail(WPR_CORRUPT,
                "%s: step %" PRIu64 ": %" PRIu64 " bytes for a frame of at most %" PRIu64,
                file.path(), step, record.stored_size, most);
  const Bytes payload{packed ? staging(record.stored_size) : raw, record.stored_size};
  WPR_STORE_TRY(file.read(offset + kRecordSize, payload));
  if (checksum(payload, head_.id) != record.checksum)
    return fail(WPR_CHECKSUM,
                "%s: step %" PRIu64 ": the checksum of its %" PRIu64 " bytes at %" PRIu64
                " does not match",
                file.path(), step, record.stored_size, offset + kRecordSize);
  const double middle = now();
  times->read += middle - began;
  if (!packed) return {};
  const Status status = expand(payload, raw);
  times->expand += now() - middle;
  if (!status.ok())
    return fail(status.code, "%s: step %" PRIu64 ": %s", file.path(), step, status.text);
  return {};
}

}  // namespace wirepress::store
