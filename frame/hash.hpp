// SPDX-License-Identifier: Apache-2.0
// XXH3, as frames use it: the low half of the 64-bit hash.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kernel.hpp"

namespace wirepress {

inline uint32_t short_hash(ConstBytes bytes, uint64_t seed) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
}

}  // namespace wirepress
