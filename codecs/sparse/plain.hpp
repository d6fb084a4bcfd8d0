// SPDX-License-Identifier: Apache-2.0
// Ops of codecs/sparse/sparse.hpp in plain C++, of which other kernels keep what they do no better.
#pragma once

#include <bit>
#include <cstring>

#include "codecs/sparse/sparse.hpp"

namespace wirepress {
namespace {

struct PlainOps {
  template <typename T>
  static uint64_t test(const std::byte* v, T bits) {
    T chunk[kChunk], any = 0;
    std::memcpy(chunk, v, sizeof(chunk));
    for (size_t i = 0; i < kChunk; ++i) any |= chunk[i];
    if ((any & bits) == 0) return 0;
    uint64_t mask = 0;
    for (size_t i = 0; i < kChunk; ++i) mask |= uint64_t{(chunk[i] & bits) != 0} << i;
    return mask;
  }
  // Without a branch on each element where many are kept.
  template <typename T>
  static void keep(uint64_t mask, const std::byte* v, T* out) {
    if (std::popcount(mask) < 24) {
      for (; mask != 0; mask &= mask - 1)
        *out++ = load_word<T>(v, static_cast<size_t>(std::countr_zero(mask)));
      return;
    }
    for (size_t i = 0; i < kChunk; ++i) {
      *out = load_word<T>(v, i);
      out += mask >> i & 1;
    }
  }
  template <typename T>
  static void spread(uint64_t mask, const T* from, T base, std::byte* out) {
    T chunk[kChunk];
    if (std::popcount(mask) < 24) {
      std::fill_n(chunk, kChunk, base);
      for (; mask != 0; mask &= mask - 1) chunk[std::countr_zero(mask)] = *from++;
    } else {
      for (size_t i = 0; i < kChunk; ++i) {
        const uint64_t there = mask >> i & 1;
        chunk[i] = there ? *from : base;
        from += there;
      }
    }
    std::memcpy(out, chunk, sizeof(chunk));
  }
  template <typename T>
  static void set(uint64_t mask, T bit, T* v) {
    for (size_t i = 0; i < kChunk; ++i)
      v[i] = static_cast<T>(v[i] | (bit & static_cast<T>(0 - (mask >> i & 1))));
  }
  template <typename T>
  static void negate(uint64_t mask, T* v) {
    for (size_t i = 0; i < kChunk; ++i) {
      const T all = static_cast<T>(0 - (mask >> i & 1));
      v[i] = static_cast<T>((v[i] ^ all) - all);
    }
  }
  template <typename T>
  static uint64_t differ(const std::byte* before, const std::byte* after) {
    if (std::memcmp(before, after, kChunk * sizeof(T)) == 0) return 0;
    uint64_t mask = 0;
    for (size_t i = 0; i < kChunk; ++i)
      mask |= uint64_t{load_word<T>(before, i) != load_word<T>(after, i)} << i;
    return mask;
  }
  template <typename T>
  static void keep_steps(uint64_t mask, const std::byte* before, const std::byte* after, T* out) {
    std::byte steps[kChunk * sizeof(T)];
    find_steps<T>(before, after, sizeof(steps), steps);
    keep<T>(mask, steps, out);
  }
  template <typename T>
  static void move(uint64_t mask, const T* from, std::byte* words) {
    for (; mask != 0; mask &= mask - 1) {
      const size_t i = static_cast<size_t>(std::countr_zero(mask));
      const T word = order(static_cast<T>(order(load_word<T>(words, i)) + *from++));
      std::memcpy(words + i * sizeof(T), &word, sizeof(T));
    }
  }
};

}  // namespace
}  // namespace wirepress
