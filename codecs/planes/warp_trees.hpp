// SPDX-License-Identifier: Apache-2.0
// Partition codes on a GPU (spec.md). No value waits for another: its place in a child's list is
// the number of ones, or of zeros, before its bit in the parent. So all that is needed of a code is
// how many ones stand before any bit, and where nodes begin.
#pragma once

#include "codecs/planes/format.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr uint32_t kChunkWarps = 16;  // of the block that has a chunk: a lane has 32 elements
static_assert(kChunkWarps * cuda::kLanes * 32 == kChunk);

// By one lane of a warp, or one warp of a block.
template <class W, class F>
WPR_ON_DEVICE void once(W& w, F f) {
  w.each(
      [=](uint32_t lane) {
        if (lane == 0) f();
      },
      w.lane());
}

// The sum of x over a warp's lanes, in all of them.
template <class W, class Lanes>
WPR_ON_DEVICE uint32_t sum_of(W& w, Lanes x) {
  for (unsigned apart = cuda::kLanes / 2; apart > 0; apart /= 2)
    x = w.map([](uint32_t a, uint32_t b) { return a + b; }, x, w.down(x, apart));
  return w.from(x, 0);
}

// ---- ones before a bit ----------------------------------------------------------------------

// Of `size` bytes, aligned to 8, behind which are zeros. `before` has a number for each 256 bits,
// and one behind the last: ones before them, modulo 2^32, of which differences are asked for.
struct Ones {
  static constexpr uint64_t kStep = 256;
  const std::byte* bytes = nullptr;
  uint64_t size = 0;
  const uint32_t* before = nullptr;

  static constexpr uint64_t steps(uint64_t size) { return size * 8 / kStep + 1; }

  WPR_ON_DEVICE uint64_t word(uint64_t i) const {
    if (8 * i + 8 <= size) return cuda::get<uint64_t>(bytes + 8 * i);
    uint64_t x = 0;
    for (uint64_t k = 8 * i; k < size; ++k) x |= static_cast<uint64_t>(bytes[k]) << 8 * (k % 8);
    return x;
  }
  WPR_ON_DEVICE uint32_t bit(uint64_t at) const {
    return static_cast<uint32_t>(bytes[at / 8]) >> at % 8 & 1;
  }
  WPR_ON_DEVICE uint32_t up_to(uint64_t at) const {
    uint32_t sum = before[at / kStep];
    for (uint64_t i = at / kStep * (kStep / 64); i < at / 64; ++i)
      sum += static_cast<uint32_t>(std::popcount(word(i)));
    if (at % 64 != 0)
      sum += static_cast<uint32_t>(std::popcount(word(at / 64) & ((uint64_t{1} << at % 64) - 1)));
    return sum;
  }
};

// Fills `before`: a warp has 128 steps, 4 KiB.
template <class Find>
struct CountOnes {
  static constexpr unsigned kWarps = 1;
  static constexpr uint32_t kEach = 4;
  static constexpr uint64_t kSteps = kEach * cuda::kLanes;
  static constexpr uint64_t blocks(uint64_t size) {
    return (Ones::steps(size) + kSteps - 1) / kSteps;
  }
  Find find;  // gives Ones, and the places of warps

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const cuda::Places places(find.places());
    const uint64_t number = places.next(w), first = number * kSteps;
    const Ones ones = find.ones();
    const auto in_step = [=](uint64_t step) {
      uint32_t sum = 0;
      for (uint64_t i = 0; i < Ones::kStep / 64; ++i)
        sum += static_cast<uint32_t>(std::popcount(ones.word(step * (Ones::kStep / 64) + i)));
      return sum;
    };
    const auto own = w.map(
        [=](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t i = 0; i < kEach; ++i) sum += in_step(first + kEach * lane + i);
          return sum;
        },
        w.lane());
    uint32_t all = 0;
    const auto in_warp = cuda::sums_before(w, own, &all);
    const auto begin = static_cast<uint32_t>(places.before(w, number, all));
    uint32_t* const to = const_cast<uint32_t*>(ones.before);
    const uint64_t end = Ones::steps(ones.size);
    w.each(
        [=](uint32_t lane, uint32_t before) {
          uint32_t sum = begin + before;
          for (uint64_t i = first + kEach * lane; i < first + kEach * lane + kEach && i < end;
               ++i) {
            to[i] = sum;
            sum += in_step(i);
          }
        },
        w.lane(), in_warp);
  }
};

// ---- trees ----------------------------------------------------------------------------------

// As Tree (tree.hpp): nodes in the order in which they stand in a code.
struct TreeTable {
  struct Node {
    int16_t left, right;         // nodes, or leaves as ~symbol
    uint16_t first, split, end;  // leaves below it, and the first on its right
  };
  Node node[kMostLeaves];
  uint16_t symbol[kMostLeaves + 1];  // of leaves, from left to right
  uint16_t code[kMostLeaves + 1];    // of leaves: kMostLength bits, from the uppermost down
  uint8_t length[kMostLeaves + 1];
  uint8_t leaf[kValues];  // by value; of those without a code the escape's
  uint16_t n_nodes, n_leaves;
  uint16_t escape;                  // its leaf
  uint16_t escape_before;           // the nodes that stand in a code before what has no code
  uint16_t depth;                   // of the deepest leaf
  uint16_t begin[kMostLength + 2];  // where leaves of a length begin; then the nodes on a way
};

constexpr bool is_inner(int16_t child) { return child >= 0; }
constexpr int16_t kEscapeLeaf = ~static_cast<int16_t>(kEscape);

// Of complete lengths, length_of(symbol), of the escape and first to last, 2 to kMostLeaves of them
// not 0. By one lane.
template <class F>
WPR_ON_DEVICE void build(TreeTable* tree, uint32_t first, uint32_t last, F length_of) {
  uint16_t* const begin = tree->begin;
  for (uint32_t i = 0; i < kMostLength + 2; ++i) begin[i] = 0;
  const auto each = [&](auto use) {
    for (uint32_t s = first; s <= last; ++s)
      if (const uint32_t length = length_of(s); length > 0) use(s, length);
    use(static_cast<uint32_t>(kEscape), length_of(kEscape));
  };
  each([=](uint32_t, uint32_t length) { ++begin[length + 1]; });
  for (uint32_t i = 1; i < kMostLength + 2; ++i)
    begin[i] = static_cast<uint16_t>(begin[i] + begin[i - 1]);
  tree->n_leaves = begin[kMostLength + 1];
  each([=](uint32_t s, uint32_t length) {
    const uint32_t leaf = begin[length]++;
    tree->symbol[leaf] = static_cast<uint16_t>(s);
    tree->length[leaf] = static_cast<uint8_t>(length);
  });
  // Leaf by leaf from the left, nodes are met first in the order of a code.
  uint16_t* const way = begin;  // the node at each depth, of the leaf before
  uint32_t units = 0, nodes = 0, before = 0, depth = 0;
  const uint32_t n = tree->n_leaves;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t length = tree->length[i], s = tree->symbol[i];
    depth = length > depth ? length : depth;
    // The first bit in which its code differs from the one before it, whose way it leaves there.
    const uint32_t shared =
        i == 0 ? 0
               : static_cast<uint32_t>(std::countl_zero((units ^ before) << (32 - kMostLength)));
    const auto child_at = [&](uint32_t d) -> int16_t* {
      TreeTable::Node& parent = tree->node[way[d - 1]];
      return (units >> (kMostLength - d) & 1) != 0 ? &parent.right : &parent.left;
    };
    if (i > 0)
      for (uint32_t d = shared + 1; d < tree->length[i - 1]; ++d)
        tree->node[way[d]].end = static_cast<uint16_t>(i);
    if (i > 0) tree->node[way[shared]].split = static_cast<uint16_t>(i);
    for (uint32_t d = i == 0 ? 0 : shared + 1; d < length; ++d) {
      if (d > 0) *child_at(d) = static_cast<int16_t>(nodes);
      tree->node[nodes].first = static_cast<uint16_t>(i);
      way[d] = static_cast<uint16_t>(nodes++);
    }
    *child_at(length) = static_cast<int16_t>(~s);
    tree->code[i] = static_cast<uint16_t>(units);
    if (s == kEscape) {
      tree->escape = static_cast<uint16_t>(i);
      tree->escape_before = static_cast<uint16_t>(nodes);
    }
    before = units;
    units += static_cast<uint32_t>(kUnits) >> length;
  }
  for (uint32_t d = 0; d < tree->length[n - 1]; ++d)
    tree->node[way[d]].end = static_cast<uint16_t>(n);
  tree->n_nodes = static_cast<uint16_t>(nodes);
  tree->depth = static_cast<uint16_t>(depth);
  for (uint32_t s = 0; s < kValues; ++s) tree->leaf[s] = static_cast<uint8_t>(tree->escape);
  for (uint32_t i = 0; i < n; ++i)
    if (i != tree->escape) tree->leaf[tree->symbol[i]] = static_cast<uint8_t>(i);
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
