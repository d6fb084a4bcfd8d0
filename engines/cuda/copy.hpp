// SPDX-License-Identifier: Apache-2.0
// Copies of any number of bytes between any addresses, by one warp. Written in warp.hpp's terms.
#pragma once

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

// Words are stored where the target has them. Up to three bytes before the source are read, which
// belong to its first word, and none behind it. The two do not overlap.
template <class W>
WPR_ON_DEVICE void copy_any(W& w, const std::byte* from, std::byte* to, uint64_t n) {
  const uint64_t before = -reinterpret_cast<uintptr_t>(to) & 3, head = n < before ? n : before;
  const auto shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from + head) & 3) * 8;
  const uint64_t words = n < head + 8 ? 0 : (n - head - 4) / 4, rest = n - head - 4 * words;
  const std::byte* const in = from + head - shift / 8;
  std::byte* const out = to + head;
  for (uint64_t i = 0; i < words; i += kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane >= words) return;
          const std::byte* const at = in + 4 * (i + lane);
          uint32_t word = get<uint32_t>(at);
          if (shift != 0) word = word >> shift | get<uint32_t>(at + 4) << (32 - shift);
          put(out + 4 * (i + lane), word);
        },
        w.lane());
  w.each(
      [=](uint32_t lane) {
        if (lane < head) to[lane] = from[lane];
        if (lane < rest) to[n - rest + lane] = from[n - rest + lane];
      },
      w.lane());
}

// At most 32 bytes, such as the last ones of data that are no whole value.
template <class W>
WPR_ON_DEVICE void copy_few(W& w, const std::byte* from, std::byte* to, uint64_t n) {
  w.each(
      [=](uint32_t lane) {
        if (lane < n) to[lane] = from[lane];
      },
      w.lane());
}

}  // namespace wirepress::cuda
