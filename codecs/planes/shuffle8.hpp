// SPDX-License-Identifier: Apache-2.0
// Lists divided and merged eight values at a time, by shuffles from tables that a byte of a node's
// bits selects: for instruction sets without compress and expand. Eight is the instruction set's
// vector of kValues bytes, with the operations that are used below.
#pragma once

#include "codecs/planes/plain.hpp"

namespace wirepress {
namespace {
namespace planes {

using Shuffles = std::array<std::array<uint8_t, 8>, 256>;
// Values of two lists, which stand one behind the other, in the order of the bits.
constexpr Shuffles merging() {
  Shuffles table{};
  for (size_t bits = 0; bits < 256; ++bits) {
    uint8_t left = 0, right = 8;
    for (size_t i = 0; i < 8; ++i) table[bits][i] = (bits >> i & 1) != 0 ? right++ : left++;
  }
  return table;
}
// Those of a list whose bit is 0, and behind them the others.
constexpr Shuffles dividing() {
  Shuffles table{};
  for (size_t bits = 0; bits < 256; ++bits) {
    size_t at = 0;
    for (const unsigned side : {0u, 1u})
      for (uint8_t i = 0; i < 8; ++i)
        if ((bits >> i & 1) == side) table[bits][at++] = i;
  }
  return table;
}
alignas(64) constexpr Shuffles kMerging = merging();
alignas(64) constexpr Shuffles kDividing = dividing();

template <typename Eight>
struct ShuffleOps : PlainOps {
  static std::byte* pick(const std::byte* leaves, const std::byte* values, size_t n, uint8_t leaf,
                         std::byte* out) {
    const typename Eight::Limit limit = Eight::limit(leaf);
    for (size_t i = 0; i < n; i += Eight::kValues)
      if (Eight::any_is(leaves + i, limit))
        out = PlainOps::pick(leaves + i, values + i, std::min(n - i, Eight::kValues), leaf, out);
    return out;
  }

  template <bool kLeft, bool kRight>
  static size_t divide(const std::byte* list, size_t n, uint8_t split, std::byte* bits,
                       std::byte* left, std::byte* right) {
    const typename Eight::Limit limit = Eight::limit(split);
    std::byte* const right_begin = right;
    size_t ones = 0;
    for (size_t i = 0; i < n; i += Eight::kValues) {
      uint32_t above = Eight::above(list + i, limit);
      const size_t rest = n - i;
      if (rest < Eight::kValues) above &= (1u << rest) - 1;
      std::memcpy(bits + i / 8, &above, Eight::kValues / 8);
      if (!kLeft && !kRight) {
        ones += static_cast<size_t>(std::popcount(above));
        continue;
      }
#pragma GCC unroll 4
      for (size_t k = 0; k < Eight::kValues; k += 8) {
        const uint32_t byte = above >> k & 0xFF;
        const auto n_right = static_cast<size_t>(std::popcount(byte));
        const uint64_t sorted = Eight::sort(list + i + k, kDividing[byte].data());
        if (kLeft) {
          std::memcpy(left, &sorted, sizeof(sorted));
          left += 8 - n_right;
        }
        if (kRight) {
          const uint64_t upper = sorted >> (8 * (8 - n_right) & 63);  // none: never read
          std::memcpy(right, &upper, sizeof(upper));
          right += n_right;
        }
        if (!kRight) ones += n_right;
      }
    }
    return kRight ? static_cast<size_t>(right - right_begin) : ones;
  }

  template <bool kLeft, bool kRight>
  static void merge(const std::byte* bits, size_t n, const std::byte* left, const std::byte* right,
                    std::byte a, std::byte b, std::byte* out) {
    if constexpr (!kLeft && !kRight && requires { &Eight::blend; }) {
      size_t i = 0;
      for (; i + Eight::kValues <= n; i += Eight::kValues)
        Eight::blend(load(bits + i / 8, Eight::kValues / 8), a, b, out + i);
      if (i < n) Eight::blend(load(bits + i / 8, (n - i + 7) / 8), a, b, out + i);
      return;
    }
    std::array<std::byte, 8> all_left, all_right;
    all_left.fill(a);
    all_right.fill(b);
    if (!kLeft) left = all_left.data();
    if (!kRight) right = all_right.data();
    const auto step = [&](uint32_t byte) {
      Eight::merge(left, right, kMerging[byte].data(), out);
      const auto n_right = static_cast<size_t>(std::popcount(byte));
      if (kLeft) left += 8 - n_right;
      if (kRight) right += n_right;
      out += 8;
    };
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
      uint64_t word;
      std::memcpy(&word, bits + i / 8, sizeof(word));
#pragma GCC unroll 8
      for (size_t k = 0; k < 64; k += 8) step(word >> k & 0xFF);
    }
    for (; i < n; i += 8) step(static_cast<uint8_t>(bits[i / 8]));
  }
};

}  // namespace planes
}  // namespace
}  // namespace wirepress
