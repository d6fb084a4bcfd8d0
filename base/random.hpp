// SPDX-License-Identifier: Apache-2.0
// The one random number of the house: a hash of (seed, index), the same in C++, CUDA and RTL. What
// is drawn for an element depends on nothing else, so it can be drawn in any order, and again.
#pragma once

#include <cstdint>

namespace wirepress {

// 32 uniform bits.
constexpr uint32_t random_bits(uint64_t seed, uint64_t index) {
  uint32_t h = static_cast<uint32_t>(index) * 0x9E3779B1u + static_cast<uint32_t>(seed);
  h ^= static_cast<uint32_t>(index >> 32) * 0x85EBCA6Bu + static_cast<uint32_t>(seed >> 32);
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  return h ^ h >> 16;
}

}  // namespace wirepress
