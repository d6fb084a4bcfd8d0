// SPDX-License-Identifier: Apache-2.0
// The block of onebit: how many values, and its head, the two means.
#pragma once

#include "codecs/common/chunked/bit_planes.hpp"

namespace wirepress::onebit {

constexpr const char* kName = "onebit";
constexpr size_t kValues = 4096;  // the most
constexpr size_t kHeadSize = 8;

enum ParamIndex { kBlock = 0 };
constexpr int kLeastBlock = 5, kMostBlock = 12;

static inline size_t values(const Args& args) { return size_t{1} << args.value[kBlock]; }

struct Means {
  float negative;
  float other;

  // Of sums and counts. A value that is not finite is found here: it leaves no finite sum.
  static Means of(const chunks::Sums& negative, size_t n_negative, const chunks::Sums& other,
                  size_t n_other) {
    return of(chunks::total(negative), n_negative, chunks::total(other), n_other);
  }
  static constexpr Means of(float negative, size_t n_negative, float other, size_t n_other) {
    return {mean(negative, n_negative), mean(other, n_other)};
  }
  constexpr bool finite() const { return chunks::finite(negative) && chunks::finite(other); }

  static Means read(const std::byte* code) {
    return {chunks::read<float>(code), chunks::read<float>(code + 4)};
  }
  void write(std::byte* code) const {
    chunks::write(code, negative);
    chunks::write(code + 4, other);
  }
  // Whether an encoder writes them; `bits` are those of their chunk.
  bool valid(const std::byte* bits, size_t bits_size) const {
    return is_nan() ? chunks::all_zero(bits, bits_size) : valid();
  }
  // Those of a chunk with a value that is not finite.
  constexpr bool is_nan() const {
    return chunks::word_of(negative) == chunks::kNan && chunks::word_of(other) == chunks::kNan;
  }
  constexpr bool valid() const {
    const uint32_t first = chunks::word_of(negative);
    const uint32_t second = chunks::word_of(other);
    const bool below = first == 0 || (first > chunks::kSign && finite());
    return below && second < chunks::kInfinity;
  }

 private:
  static constexpr float mean(float sum, size_t n) {
    return n == 0 ? 0 : sum / static_cast<float>(n);
  }
};

}  // namespace wirepress::onebit
