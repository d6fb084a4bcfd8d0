// SPDX-License-Identifier: Apache-2.0
// What a sample's values would take, on a processor: lengths.hpp has what GPUs share.
#pragma once

#include "codecs/planes/lengths.hpp"

namespace wirepress {
namespace {
namespace planes {

inline Counts count(const std::byte* values, size_t n) {
  // Eight, because equal neighbours wait for each other in one.
  std::array<std::array<uint32_t, kValues>, 8> parts{};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, values + i, sizeof(eight));
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) ++parts[k][eight >> 8 * k & 0xFF];
  }
  for (; i < n; ++i) ++parts[0][static_cast<uint8_t>(values[i])];
  Counts sum{};
  for (const auto& part : parts)
    for (size_t s = 0; s < kValues; ++s) sum[s] += part[s];
  return sum;
}

// Sorts keys, which stand in the order of their lower 9 bits, by the bits above: digit by digit,
// since comparisons of 200 keys would be as slow as counting 16384 bytes.
inline void sort_by_count(std::array<uint64_t, kSymbols>* keys, size_t n) {
  uint64_t any = 0;
  for (size_t i = 0; i < n; ++i) any |= (*keys)[i];
  std::array<uint64_t, kSymbols> other;
  for (unsigned shift = 9; any >> shift != 0; shift += 8) {
    std::array<uint16_t, 257> begin{};
    for (size_t i = 0; i < n; ++i) ++begin[((*keys)[i] >> shift & 255) + 1];
    for (size_t d = 1; d < begin.size(); ++d)
      begin[d] = static_cast<uint16_t>(begin[d] + begin[d - 1]);
    for (size_t i = 0; i < n; ++i) other[begin[(*keys)[i] >> shift & 255]++] = (*keys)[i];
    std::copy_n(other.begin(), n, keys->begin());
  }
}

// Leaves out values that do not occur.
inline Order fold(Counts* counts, size_t total) {
  std::array<uint64_t, kSymbols> keys;
  size_t n = 0;
  for (size_t s = 0; s < kValues; ++s)
    if ((*counts)[s] > 0) keys[n++] = uint64_t{(*counts)[s]} << 9 | s;
  sort_by_count(&keys, n);
  Order order;
  fold_sorted(keys, n, total, counts, &order);
  return order;
}

// What a sample's values would take.
struct Estimate {
  Lengths lengths{};
  uint64_t bits = 0;
};

// At least one value occurs.
inline Estimate estimate(Counts&& counts, size_t total) {
  Estimate result;
  const Order order = fold(&counts, total);
  Huffman tree;
  tree_depths(counts, order, &tree, &result.lengths);
  limit(order, &result.lengths);
  result.bits = bits_of(counts, order, result.lengths);
  return result;
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
