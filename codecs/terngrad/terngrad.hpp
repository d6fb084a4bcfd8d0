// SPDX-License-Identifier: Apache-2.0
// The scale of a chunk of terngrad.
#pragma once

#include <cmath>

#include "base/device.hpp"
#include "codecs/common/chunked/bit_planes.hpp"

namespace wirepress::terngrad {

constexpr const char* kName = "terngrad";
constexpr size_t kValues = 4096;
constexpr size_t kHeadSize = 4;
constexpr size_t kPlanes = 2;     // not zero; negative
constexpr size_t kGroupSize = 8;  // bytes of 32 values
constexpr int kDrawnBits = 23;    // of each draw: scale * (1 - 2^-23) rounds to less than scale
constexpr float kDrawUnit = 0x1p-23f;
constexpr float kLeastVariance = 0x1p-100f;  // below it, squares lose bits: nothing is clipped

enum ParamIndex { kClip = 0 };

static inline float clip_of(const Args& args) { return static_cast<float>(args.real(kClip)); }

// The scale, of the largest absolute value, the sums of the values and of their squares. Where sums
// overflow, no comparison is true and nothing is clipped.
WPR_HD static inline float clipped(float largest, float clip, float sum, float squares, size_t n) {
  const float mean = sum / static_cast<float>(n);
  const float variance = squares / static_cast<float>(n) - mean * mean;
  if (!(variance > kLeastVariance)) return largest;
  const float limit = clip * std::sqrt(variance);
  return limit < largest ? limit : largest;
}
static inline float clipped(float largest, float clip, const chunks::Sums& sums,
                            const chunks::Sums& squares, size_t n) {
  return clipped(largest, clip, chunks::total(sums), chunks::total(squares), n);
}

// Whether a value is taken, by its draw of kDrawnBits.
static constexpr bool taken(float size, uint32_t drawn, float scale) {
  return size > static_cast<float>(drawn) * kDrawUnit * scale;
}

// Whether an encoder writes it; `groups` are those of its chunk.
static inline bool valid(float scale, const std::byte* groups, size_t size) {
  const uint32_t word = chunks::word_of(scale);
  return word < chunks::kInfinity || (word == chunks::kNan && chunks::all_zero(groups, size));
}

}  // namespace wirepress::terngrad
