// SPDX-License-Identifier: Apache-2.0
// Where things stand in a payload and in a sample (spec.md), for processors and GPUs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/common/random.hpp"

namespace wirepress::sparse {

inline constexpr size_t kRun = 16;  // values that a sample takes side by side: a line of the cache
inline constexpr size_t kCountSize = 4;

// The parts of a payload: count, values, high bits, low bits, last bytes.
struct Layout {
  size_t n;
  size_t count;
  unsigned width = 0;  // of a position's low part
  size_t high_size = 0;
  size_t low_size = 0;
  bool dense = false;  // every value, no positions

  constexpr size_t high_at() const { return kCountSize + 4 * count; }
  constexpr size_t low_at() const { return high_at() + high_size; }
  constexpr size_t size() const { return n > 0 ? low_at() + low_size : 0; }
};

// Of `count` values at their positions, or of all n where that is no larger.
constexpr Layout layout_of(size_t n, size_t count) {
  Layout layout = {.n = n, .count = count};
  if (count > 0 && count < n) {
    layout.width = static_cast<unsigned>(std::bit_width(n / count)) - 1;
    layout.high_size = (count + ((n - 1) >> layout.width) + 7) / 8;
    layout.low_size = (count * layout.width + 7) / 8;
  }
  if (count == n || layout.size() >= kCountSize + 4 * n)
    layout = {.n = n, .count = n, .dense = true};
  return layout;
}

// The places of a sample: one run of 16 in each of `runs` equal parts of the block's `groups` runs.
// The first value of run i.
constexpr size_t run_begin(uint64_t seed, uint64_t first, uint64_t groups, uint64_t runs,
                           uint64_t i) {
  const uint64_t begin = i * groups / runs, end = (i + 1) * groups / runs;
  const uint64_t h = random_bits(seed, first + kRun * begin);
  return kRun * (begin + (h * (end - begin) >> 32));
}

}  // namespace wirepress::sparse
