// SPDX-License-Identifier: Apache-2.0
// The one random number of the house: a hash of (seed, element), not a generator with a state, so
// that any element can be drawn alone, in any order, on any engine. 32-bit operations only: cheap
// in SIMD, CUDA and hardware. After a Weyl step by the golden ratio, the mixer is the one that
// Chris Wellons found by search ("lowbias32", 2018).
#pragma once

#include <cstdint>

namespace wirepress {

inline constexpr uint32_t kDrawStep = 0x9E3779B1;   // odd, nearest to 2^32 / golden ratio
inline constexpr uint32_t kDrawUpper = 0x85EBCA6B;  // for the upper half of a 64-bit index
inline constexpr uint32_t kDrawMix1 = 0x7FEB352D;
inline constexpr uint32_t kDrawMix2 = 0x846CA68B;

// What random_bits() makes of index and seed before it mixes: elements whose index has the same
// upper half differ in `sum` alone, by kDrawStep from one to the next.
struct DrawStart {
  uint32_t sum;
  uint32_t mask;
};

static inline constexpr DrawStart draw_start(uint64_t seed, uint64_t index) {
  return {static_cast<uint32_t>(index) * kDrawStep + static_cast<uint32_t>(seed),
          static_cast<uint32_t>(index >> 32) * kDrawUpper + static_cast<uint32_t>(seed >> 32)};
}

// 32 uniform bits for element `index`. `static`: kernels for different processors use it.
static inline constexpr uint32_t random_bits(uint64_t seed, uint64_t index) {
  const DrawStart start = draw_start(seed, index);
  uint32_t h = start.sum ^ start.mask;
  h = (h ^ h >> 16) * kDrawMix1;
  h = (h ^ h >> 15) * kDrawMix2;
  return h ^ h >> 16;
}

}  // namespace wirepress
