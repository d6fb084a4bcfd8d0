// SPDX-License-Identifier: Apache-2.0
// The scan of base/sparse.hpp in plain C++.
#pragma once

#include <cstring>

#include "base/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Scalar {
  template <bool kFeedback>
  static size_t run(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                    uint32_t threshold, Keys* keys) {
    size_t i = begin;
    while (i < n && keys->count + kGroup <= keys->room) {
      uint32_t word[kGroup];
      const size_t size = std::min(kGroup, n - i);
      std::memcpy(word, src + 4 * i, 4 * size);
      if (kFeedback) add_residual(word, residual + 4 * i, size);
      bool hit = false;  // rarely; so first all of them without branches
      for (size_t j = 0; j < size; ++j) hit |= (word[j] & ~kSign) >= threshold;
      for (size_t j = 0; hit && j < size; ++j) {
        if ((word[j] & ~kSign) < threshold) continue;
        keys->key[keys->count++] = make_key(canonical(word[j]), static_cast<uint32_t>(i + j));
        if (kFeedback && (word[j] & ~kSign) >= kInfinity) std::memset(residual + 4 * (i + j), 0, 4);
      }
      i += size;
    }
    return i;
  }

  // word becomes word + residual, and so does the residual.
  static void add_residual(uint32_t* word, std::byte* residual, size_t n) {
    float t[kGroup], e[kGroup];
    std::memcpy(t, word, 4 * n);
    std::memcpy(e, residual, 4 * n);
    for (size_t j = 0; j < n; ++j) t[j] += e[j];
    std::memcpy(word, t, 4 * n);
    std::memcpy(residual, t, 4 * n);
  }

  static size_t scan(const std::byte* src, std::byte*, size_t begin, size_t n, uint32_t threshold,
                     Keys* keys) {
    return run<false>(src, nullptr, begin, n, threshold, keys);
  }
  static size_t scan_feedback(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                              uint32_t threshold, Keys* keys) {
    return run<true>(src, residual, begin, n, threshold, keys);
  }
};

}  // namespace
}  // namespace wirepress::sparse
