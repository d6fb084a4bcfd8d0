// SPDX-License-Identifier: Apache-2.0
// The scan of codecs/common/sparse/sparse.hpp in plain C++.
#pragma once

#include <cstring>

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Scalar {
  template <bool kFeedback>
  static size_t run(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                    uint32_t threshold, Keys* keys) {
    size_t i = begin;
    while (i < n && keys->count + kGroup <= keys->room) {
      const size_t size = std::min(kGroup, n - i);
      std::byte* const rest = kFeedback ? residual + 4 * i : nullptr;
      uint32_t word[kGroup] = {};
      if (size == kGroup) {  // twice the same, but with a constant for the compiler
        load<kFeedback>(src + 4 * i, rest, kGroup, word);
      } else {
        load<kFeedback>(src + 4 * i, rest, size, word);
      }
      if (any(word, threshold)) take<kFeedback>(word, residual, i, size, threshold, keys);
      i += size;
    }
    return i;
  }

  // The values, or what they and the residual become.
  template <bool kFeedback>
  static void load(const std::byte* src, std::byte* residual, size_t n, uint32_t* word) {
    float t[kGroup], e[kGroup];
    std::memcpy(t, src, 4 * n);
    if (kFeedback) {
      std::memcpy(e, residual, 4 * n);
      for (size_t j = 0; j < n; ++j) t[j] += e[j];
      std::memcpy(residual, t, 4 * n);
    }
    std::memcpy(word, t, 4 * n);
  }

  // Whether one of kGroup values reaches the threshold: rarely, so all of them without branches.
  static bool any(const uint32_t* word, uint32_t threshold) {
    uint32_t below = kSign;
    for (size_t j = 0; j < kGroup; ++j) below &= (word[j] & ~kSign) - threshold;
    return below == 0;
  }

  template <bool kFeedback>
  static void take(const uint32_t* word, std::byte* residual, size_t i, size_t n,
                   uint32_t threshold, Keys* keys) {
    for (size_t j = 0; j < n; ++j) {
      if ((word[j] & ~kSign) < threshold) continue;
      keys->key[keys->count++] = make_key(canonical(word[j]), static_cast<uint32_t>(i + j));
      if (kFeedback && (word[j] & ~kSign) >= kInfinity) std::memset(residual + 4 * (i + j), 0, 4);
    }
  }
};

}  // namespace
}  // namespace wirepress::sparse
