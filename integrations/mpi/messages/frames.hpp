// SPDX-License-Identifier: Apache-2.0
// A compressed message: the job's cookie and one frame, always shorter than the raw message, under
// the same envelope (spec/mpi-wire.md).
#pragma once

#include <cstring>

#include "job/job.hpp"
#include "messages/types.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// The shortest frame: header 12, block word 4, payload 1. Shorter messages cannot be compressed.
inline constexpr size_t kMinWire = kCookieSize + 17;

struct Made {
  size_t size = 0;      // of the message; 0: not enough shorter than raw
  size_t raw_size = 0;  // of the bytes that the codec was given
  double seconds = 0;   // in the codec
};
// Cookie and frame of `size` raw bytes into dst.
Made make_frame(Call call, int candidate, const Byte* src, size_t size, const Type& type, Byte* dst,
                size_t capacity);

inline bool is_own(const Byte* wire) { return std::memcmp(wire, job().cookie, kJobSize) == 0; }
// A frame, or a message in pieces, of another job: expand() refuses it, so that it is never handed
// out as data.
bool is_foreign(const Byte* wire);
inline bool is_framed(const Byte* wire, size_t size) {
  return size >= kMinWire &&
         std::memcmp(wire + kJobSize, job().cookie + kJobSize, kCookieSize - kJobSize) == 0 &&
         (is_own(wire) || is_foreign(wire));
}

// Those below return an MPI error class.
// The raw size that a framed message claims; MPI_ERR_OTHER: not a frame after all.
int framed_size(const Byte* wire, size_t size, uint64_t* raw_size);
// Expands a frame without its cookie.
int expand_frame(Call call, const Byte* frame, size_t size, Byte* dst, size_t capacity,
                 size_t* written);
// Expands a framed message.
int expand(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity, size_t* written);

}  // namespace wirepress
