// SPDX-License-Identifier: Apache-2.0
// How trits cuts its data (spec.md): units of a head and groups of pairs of words, as terngrad
// writes chunks.
#pragma once

#include <algorithm>
#include <cstddef>

namespace wirepress::trits {

constexpr size_t kHeadSize = 4;
constexpr size_t kPairSize = 8;
constexpr size_t kPlaces = 32;      // of a pair
constexpr size_t kUnitPairs = 128;  // of a whole unit
constexpr size_t kPairs = 16;       // of a whole group: shares of set places differ within a unit
constexpr size_t kUnit = kHeadSize + kPairSize * kUnitPairs;
constexpr size_t kLengthSize = 10;  // of the raw size, at most
constexpr size_t kCountSize = 2;    // of a group

// Pairs of the unit that begins with these bytes; 0: they are the rest.
constexpr size_t pairs_of(size_t left) {
  return left < kHeadSize ? 0 : std::min(kUnitPairs, (left - kHeadSize) / kPairSize);
}

}  // namespace wirepress::trits
