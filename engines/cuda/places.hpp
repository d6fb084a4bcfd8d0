// SPDX-License-Identifier: Apache-2.0
// Where the code of a chunk begins, when its size follows from the data: blocks tell each other in
// one pass (decoupled look-back: Merrill and Garland, NVIDIA NVR-2016-002). Written in warp.hpp's
// terms.
#pragma once

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

// In scratch memory, cleared: the next block's number, then a word for each chunk.
class Places {
 public:
  static constexpr size_t size(uint64_t chunks) { return 8 * (chunks + 1); }
  WPR_ON_DEVICE explicit Places(std::byte* scratch)
      : words_(reinterpret_cast<uint64_t*>(scratch)) {}

  // A chunk for this block: one that began earlier has a lower one, so that none waits for a block
  // that has not begun. By one warp.
  template <class W>
  WPR_ON_DEVICE uint64_t next(W& w) const {
    return w.take_number(words_);
  }

  // The sizes of all chunks before this one, which has `size`. By one warp.
  template <class W>
  WPR_ON_DEVICE uint64_t before(W& w, uint64_t number, uint64_t size) const {
    uint64_t* const own = words_ + 1 + number;
    w.publish(own, size << 2 | (number == 0 ? kAll : kOwn));
    if (number == 0) return 0;
    uint64_t sum = 0;
    for (uint64_t end = number;;) {  // chunks end - 32 to end - 1, the last one in lane 0
      const uint64_t* const words = words_;
      const auto seen = w.map(
          [=](uint32_t lane) {
            return lane < end ? W::published(words + end - lane) : uint64_t{kAll};
          },
          w.lane());
      const uint32_t whole = w.ballot(w.map([](uint64_t x) { return (x & 3) == kAll; }, seen));
      const uint32_t unknown = w.ballot(w.map([](uint64_t x) { return (x & 3) == 0; }, seen));
      // Lanes to the first that knows all before it.
      const uint32_t wanted = whole == 0 ? ~uint32_t{0} : whole ^ (whole - 1);
      if ((unknown & wanted) != 0) {
        w.wait();
        continue;
      }
      sum += sum_of(
          w, w.map([=](uint64_t x, uint32_t lane) { return wanted >> lane & 1 ? x >> 2 : 0; }, seen,
                   w.lane()));
      if (whole != 0) break;
      end -= kLanes;
    }
    w.publish(own, (sum + size) << 2 | kAll);
    return sum;
  }

 private:
  // Of a chunk's word, in the lower two bits: not yet; its size; the sum of all to it.
  enum : uint32_t { kOwn = 1, kAll = 2 };

  // In parts of which 32 have a sum of 32 bits.
  static constexpr unsigned kBits = 27;
  static constexpr uint32_t kPart = (1u << kBits) - 1;
  template <class W, class Lanes>
  static WPR_ON_DEVICE uint64_t sum_of(W& w, Lanes x) {
    uint64_t sum = 0;
    WPR_UNROLL
    for (unsigned at = 0; at < 64; at += kBits)
      sum += uint64_t{w.sum(
                 w.map([=](uint64_t a) { return static_cast<uint32_t>(a >> at) & kPart; }, x))}
             << at;
    return sum;
  }

  uint64_t* words_;
};

// The sum of lanes before each, and of all 32.
template <class W, class Lanes>
WPR_ON_DEVICE auto sums_before(W& w, const Lanes& x, uint32_t* all) {
  auto sum = x;
  for (unsigned apart = 1; apart < kLanes; apart *= 2)
    sum = w.map([=](uint32_t a, uint32_t b, uint32_t lane) { return lane < apart ? a : a + b; },
                sum, w.up(sum, apart), w.lane());
  *all = w.from(sum, kLanes - 1);
  return w.map([](uint32_t a, uint32_t own) { return a - own; }, sum, x);
}

// Copies n half-words by all warps of a block, from shared memory to any even address, or back. In
// memory of the device words of 32 bits are touched, but for the ends.
template <unsigned kWarps, class W>
WPR_ON_DEVICE void store_halves(W& w, const std::byte* from, std::byte* to, uint32_t n) {
  const uint32_t head = (reinterpret_cast<uintptr_t>(to) & 2) / 2;  // half-words before a word
  const uint32_t words = n < head ? 0 : (n - head) / 2;
  for (uint32_t i = w.warp() * kLanes; i < words; i += kWarps * kLanes)
    w.each(
        [=](uint32_t lane) {
          const uint32_t at = 2 * head + 4 * (i + lane);
          if (i + lane < words)
            put(to + at, get<uint16_t>(from + at) | uint32_t{get<uint16_t>(from + at + 2)} << 16);
        },
        w.lane());
  w.each(
      [=](uint32_t lane) {
        const uint32_t last = 2 * (head + 2 * words);
        if (lane == 0 && head == 1 && n > 0) put(to, get<uint16_t>(from));
        if (lane == 1 && last < 2 * n) put(to + last, get<uint16_t>(from + last));
      },
      w.lane());
}

template <unsigned kWarps, class W>
WPR_ON_DEVICE void load_halves(W& w, const std::byte* from, std::byte* to, uint32_t n) {
  const uint32_t head = (reinterpret_cast<uintptr_t>(from) & 2) / 2;
  const uint32_t words = n < head ? 0 : (n - head) / 2;
  for (uint32_t i = w.warp() * kLanes; i < words; i += kWarps * kLanes)
    w.each(
        [=](uint32_t lane) {
          const uint32_t at = 2 * head + 4 * (i + lane);
          if (i + lane >= words) return;
          const uint32_t word = get<uint32_t>(from + at);
          put(to + at, static_cast<uint16_t>(word));
          put(to + at + 2, static_cast<uint16_t>(word >> 16));
        },
        w.lane());
  w.each(
      [=](uint32_t lane) {
        const uint32_t last = 2 * (head + 2 * words);
        if (lane == 0 && head == 1 && n > 0) put(to, get<uint16_t>(from));
        if (lane == 1 && last < 2 * n) put(to + last, get<uint16_t>(from + last));
      },
      w.lane());
}

}  // namespace wirepress::cuda
