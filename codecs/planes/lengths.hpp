// SPDX-License-Identifier: Apache-2.0
// Lengths of prefix codes from counts (spec.md). In an unnamed namespace, because each kernel
// compiles it for its instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr unsigned kMostLength = 11;
constexpr size_t kUnits = size_t{1} << kMostLength;  // a code of length L takes kUnits >> L
constexpr size_t kValues = 256;
constexpr size_t kEscape = kValues;  // stands for all values without a code
constexpr size_t kSymbols = kValues + 1;
constexpr size_t kMostLeaves = 256;  // so that their numbers fit bytes

using Counts = std::array<uint32_t, kSymbols>;
using Lengths = std::array<uint8_t, kSymbols>;  // 0: has no code

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

// Symbols that get a code, by count, equal ones by value.
struct Order {
  std::array<uint16_t, kSymbols> symbol;
  size_t n = 0;
};

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

// Makes the rarest values one symbol, the escape, and leaves out values that do not occur.
inline Order fold(Counts* counts, size_t total) {
  std::array<uint64_t, kSymbols> keys;
  size_t n = 0;
  for (size_t s = 0; s < kValues; ++s)
    if ((*counts)[s] > 0) keys[n++] = uint64_t{(*counts)[s]} << 9 | s;
  sort_by_count(&keys, n);
  size_t folded = 0, sum = 0;
  while (n - folded > 1 &&
         (sum + (keys[folded] >> 9) <= total >> 10 || n - folded >= kMostLeaves)) {
    sum += keys[folded] >> 9;
    (*counts)[keys[folded++] & 511] = 0;
  }
  (*counts)[kEscape] = static_cast<uint32_t>(sum + 1);
  const uint64_t escape = (sum + 1) << 9 | kEscape;
  size_t at = folded;
  Order order;
  while (at < n && keys[at] < escape) order.symbol[order.n++] = keys[at++] & 511;
  order.symbol[order.n++] = kEscape;
  while (at < n) order.symbol[order.n++] = keys[at++] & 511;
  return order;
}

// Depths in the tree that Huffman's algorithm builds: always the two lightest nodes become one; of
// equal ones leaves come first, and of leaves the smaller symbol.
inline void tree_depths(const Counts& counts, const Order& order, Lengths* lengths) {
  std::array<uint64_t, kSymbols> weight;  // of inner nodes, in the order they are made: rising
  std::array<uint16_t, 2 * kSymbols> parent;
  std::array<uint8_t, kSymbols> depth;
  size_t leaf = 0, inner = 0;
  for (size_t made = 0; made + 1 < order.n; ++made) {
    uint64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      const bool take_leaf =
          leaf < order.n && (inner == made || counts[order.symbol[leaf]] <= weight[inner]);
      sum += take_leaf ? counts[order.symbol[leaf]] : weight[inner];
      parent[take_leaf ? leaf++ : kSymbols + inner++] = static_cast<uint16_t>(made);
    }
    weight[made] = sum;
  }
  const size_t root = order.n - 2;
  depth[root] = 0;
  for (size_t node = root; node-- > 0;)
    depth[node] = static_cast<uint8_t>(depth[parent[kSymbols + node]] + 1);
  for (size_t i = 0; i < order.n; ++i)
    (*lengths)[order.symbol[i]] = static_cast<uint8_t>(depth[parent[i]] + 1);
}

// Cuts lengths to kMostLength and makes the code complete again: 2^-length sums to 1.
inline void limit(const Order& order, Lengths* lengths) {
  size_t sum = 0;
  for (size_t i = 0; i < order.n; ++i) {
    uint8_t& length = (*lengths)[order.symbol[i]];
    length = std::min<uint8_t>(length, kMostLength);
    sum += kUnits >> length;
  }
  while (sum > kUnits) {  // the longest code that can grow, of the rarest symbol
    size_t best = order.n;
    for (size_t i = 0; i < order.n; ++i) {
      const uint8_t length = (*lengths)[order.symbol[i]];
      if (length < kMostLength && (best == order.n || length > (*lengths)[order.symbol[best]]))
        best = i;
    }
    sum -= kUnits >> ++(*lengths)[order.symbol[best]];
  }
  for (size_t i = order.n; i-- > 0;) {  // the most frequent first
    uint8_t& length = (*lengths)[order.symbol[i]];
    while (sum < kUnits && (kUnits >> length) <= kUnits - sum) {
      sum += kUnits >> length;
      --length;
    }
  }
}

// What a sample's values would take: lengths, and the bits of all codes, those of escapes with the
// byte that follows.
struct Estimate {
  Lengths lengths{};
  uint64_t bits = 0;
};

// At least one value occurs.
inline Estimate estimate(Counts&& counts, size_t total) {
  Estimate result;
  const Order order = fold(&counts, total);
  tree_depths(counts, order, &result.lengths);
  limit(order, &result.lengths);
  for (size_t i = 0; i < order.n; ++i) {
    const size_t s = order.symbol[i];
    result.bits += uint64_t{counts[s]} * (result.lengths[s] + (s == kEscape ? 8u : 0u));
  }
  return result;
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
