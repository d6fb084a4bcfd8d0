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

// Symbols that get a code, by count, equal ones by value.
struct Order {
  std::array<uint16_t, kSymbols> symbol;
  size_t n = 0;
};

// Of the n values that occur, count << 9 | value, sorted: makes the rarest one symbol, the escape.
constexpr void fold_sorted(const std::array<uint64_t, kSymbols>& keys, size_t n, size_t total,
                           Counts* counts, Order* order) {
  size_t folded = 0, sum = 0;
  while (n - folded > 1 &&
         (sum + (keys[folded] >> 9) <= total >> 10 || n - folded >= kMostLeaves)) {
    sum += keys[folded] >> 9;
    (*counts)[keys[folded++] & 511] = 0;
  }
  (*counts)[kEscape] = static_cast<uint32_t>(sum + 1);
  const uint64_t escape = (sum + 1) << 9 | kEscape;
  size_t at = folded;
  order->n = 0;
  while (at < n && keys[at] < escape) order->symbol[order->n++] = keys[at++] & 511;
  order->symbol[order->n++] = kEscape;
  while (at < n) order->symbol[order->n++] = keys[at++] & 511;
}

// The tree that Huffman's algorithm builds.
struct Huffman {
  std::array<uint64_t, kSymbols> weight;  // of inner nodes, in the order they are made: rising
  std::array<uint16_t, 2 * kSymbols> parent;
  std::array<uint8_t, kSymbols> depth;
};

// Depths in the tree that Huffman's algorithm builds: always the two lightest nodes become one; of
// equal ones leaves come first, and of leaves the smaller symbol.
constexpr void tree_depths(const Counts& counts, const Order& order, Huffman* tree,
                           Lengths* lengths) {
  auto& weight = tree->weight;
  auto& parent = tree->parent;
  auto& depth = tree->depth;
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
constexpr void limit(const Order& order, Lengths* lengths) {
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

// What values take that have these counts: the bits of all codes, those of escapes with the byte
// that follows.
constexpr uint64_t bits_of(const Counts& counts, const Order& order, const Lengths& lengths) {
  uint64_t bits = 0;
  for (size_t i = 0; i < order.n; ++i) {
    const size_t s = order.symbol[i];
    bits += uint64_t{counts[s]} * (lengths[s] + (s == kEscape ? 8u : 0u));
  }
  return bits;
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
