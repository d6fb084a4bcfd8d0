// SPDX-License-Identifier: Apache-2.0
// The head of a chunk of signsgd: one scale.
#pragma once

#include "codecs/common/chunked/bit_planes.hpp"

namespace wirepress::signsgd {

constexpr const char* kName = "signsgd";
constexpr size_t kValues = 4096;
constexpr size_t kHeadSize = 4;

enum ParamIndex { kScale = 0 };
enum Scale { kMean = 0, kNone = 1 };

// What an encoder writes for the sum of the n absolute values of a chunk; NaN if it is not finite.
static constexpr float scale_of(bool mean, float sum, size_t n) {
  if (!chunks::finite(sum)) return chunks::float_of(chunks::kNan);
  return mean ? sum / static_cast<float>(n) : 1.0f;
}
static inline float scale_of(bool mean, const chunks::Sums& sums, size_t n) {
  return scale_of(mean, chunks::total(sums), n);
}

// Whether an encoder writes it, for a chunk whose bits may be set or not.
static constexpr bool valid(bool mean, float scale) {
  return mean ? chunks::word_of(scale) < chunks::kInfinity : scale == 1.0f;
}
// Whether an encoder writes it; `bits` are those of its chunk.
static inline bool valid(bool mean, float scale, const std::byte* bits, size_t bits_size) {
  const uint32_t word = chunks::word_of(scale);
  if (word == chunks::kNan) return chunks::all_zero(bits, bits_size);
  return valid(mean, scale);
}

}  // namespace wirepress::signsgd
