// SPDX-License-Identifier: Apache-2.0
#include "messages/frames.hpp"

#include <algorithm>

#include "choosing/candidates.hpp"
#include "messages/pieces.hpp"
#include "messages/thread.hpp"

namespace wirepress {

Made make_frame(Call call, int candidate, const Byte* src, size_t size, const Type& type, Byte* dst,
                size_t capacity) {
  Thread& thread = self_thread();
  wpr_ctx* ctx = context(thread, candidate);
  // What saves less than a 32nd is not worth expanding.
  const size_t limit = std::min(capacity, size - size / 32 - 1);
  Type bytes;
  const Type& whole = size % type.element == 0 ? type : bytes;
  if (!ctx || limit < kMinWire || !suits(candidate, whole.dtype)) return {};
  const Coded as = coded_as(candidate, whole, size);
  if (as.count == 0) return {};
  Made made;
  made.raw_size = size;
  size_t written;
  const DeviceShare share(&thread.calls[call]);
  const double start = now();
  const wpr_status status = wpr_compress_array(ctx, src, as.dtype, WPR_NO_SHAPE, &as.count,
                                               dst + kCookieSize, limit - kCookieSize, &written);
  made.seconds = now() - start;
  thread.calls[call].compress_seconds += made.seconds;
  if (status != WPR_OK) return made;
  std::memcpy(dst, job().cookie, kCookieSize);
  made.size = written + kCookieSize;
  return made;
}

bool is_foreign(const Byte* wire) {
  const Byte* frame = wire + kCookieSize;
  return !is_own(wire) && frame[0] == 'W' && frame[1] == 'P' &&
         (frame[2] == 'R' || frame[2] == 'P');
}

int framed_size(const Byte* wire, size_t size, uint64_t* raw_size) {
  if (!is_own(wire)) return MPI_ERR_OTHER;
  if (is_in_pieces(wire, size)) {
    Head head;
    if (!read_head(wire, size, &head)) return MPI_ERR_OTHER;
    *raw_size = head.raw_size;
    return MPI_SUCCESS;
  }
  return wpr_raw_size(wire + kCookieSize, size - kCookieSize, raw_size) == WPR_OK ? MPI_SUCCESS
                                                                                  : MPI_ERR_OTHER;
}

int expand(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity, size_t* written) {
  if (!is_own(wire)) {
    ++self_thread().events.corrupt;
    complain("a compressed message of another job came in");
    return MPI_ERR_OTHER;
  }
  if (is_in_pieces(wire, size)) return expand_pieces(call, wire, size, dst, capacity, written);
  return expand_frame(call, wire + kCookieSize, size - kCookieSize, dst, capacity, written);
}

int expand_frame(Call call, const Byte* frame, size_t size, Byte* dst, size_t capacity,
                 size_t* written) {
  Thread& thread = self_thread();
  uint64_t raw_size;
  if (wpr_raw_size(frame, size, &raw_size) == WPR_OK && raw_size > capacity) {
    ++thread.events.truncated;
    return MPI_ERR_TRUNCATE;
  }
  wpr_ctx* ctx = decoder(thread);
  if (!ctx) {
    ++thread.events.no_memory;
    return MPI_ERR_NO_MEM;
  }
  const DeviceShare share(&thread.calls[call]);
  const double start = now();
  const wpr_status status = wpr_decompress(ctx, frame, size, dst, capacity, written);
  thread.calls[call].expand_seconds += now() - start;
  if (status == WPR_OK) return MPI_SUCCESS;
  ++(status == WPR_NO_MEMORY ? thread.events.no_memory : thread.events.corrupt);
  complain(wpr_error(ctx));
  return status == WPR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

}  // namespace wirepress
