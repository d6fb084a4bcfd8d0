// SPDX-License-Identifier: Apache-2.0
// Steps between words in the order of floats: neighbours in value are one step apart, whatever the
// type. All words are exact, NaNs and both zeros too, because order() is its own inverse and sums
// wrap around.
#pragma once

#include <cstring>
#include <type_traits>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

// The place of a word among all words, as a signed integer: where the sign is set, the other bits
// are turned over. +0 is 0, -0 is -1.
template <typename T>
T order(T word) {
  static_assert(std::is_unsigned_v<T>);
  constexpr int kSignAt = 8 * sizeof(T) - 1;
  const T lower = static_cast<T>((T{1} << kSignAt) - 1);
  return static_cast<T>(word ^ (static_cast<T>(0 - (word >> kSignAt)) & lower));
}

template <typename T>
T load_word(const std::byte* words, size_t i) {
  T word;
  std::memcpy(&word, words + i * sizeof(T), sizeof(T));
  return word;
}

// steps[i] = order(after[i]) - order(before[i]), for size / sizeof(T) words.
template <typename T>
void find_steps(const std::byte* before, const std::byte* after, size_t size, std::byte* steps) {
  for (size_t i = 0; i < size / sizeof(T); ++i) {
    const T step = static_cast<T>(order(load_word<T>(after, i)) - order(load_word<T>(before, i)));
    std::memcpy(steps + i * sizeof(T), &step, sizeof(T));
  }
}

// Moves words[i] by steps[i].
template <typename T>
void take_steps(const std::byte* steps, size_t size, std::byte* words) {
  for (size_t i = 0; i < size / sizeof(T); ++i) {
    const T place = static_cast<T>(order(load_word<T>(words, i)) + load_word<T>(steps, i));
    const T word = order(place);
    std::memcpy(words + i * sizeof(T), &word, sizeof(T));
  }
}

}  // namespace
}  // namespace wirepress
