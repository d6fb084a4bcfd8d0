// SPDX-License-Identifier: Apache-2.0
// The head of a chunk of qsgd: its unit, of which decoded values are multiples.
#pragma once

#include "codecs/common/chunked/bit_planes.hpp"
#include "codecs/common/random.hpp"

namespace wirepress::qsgd {

constexpr const char* kName = "qsgd";
constexpr size_t kValues = 512;
constexpr size_t kHeadSize = 4;

constexpr int kFractionBits = 24;        // of |x| / unit, and of what is drawn
constexpr float kOne = 0x1p24f;          // 1 with them
constexpr float kLeastUnit = 0x1p-100f;  // smaller ones count as 0: kOne / unit stays finite
constexpr int kMostBits = 8;

enum ParamIndex { kBits = 0 };

// What `bits` bits mean: a sign and magnitudes 0 .. most.
struct Levels {
  explicit Levels(const Args& args)
      : bits(static_cast<size_t>(args.value[kBits])), most((1u << (bits - 1)) - 1) {}
  size_t bits;
  uint32_t most;
  constexpr size_t group_size() const { return 4 * bits; }

  // The unit for the largest absolute value (as a word) of a chunk; NaN where that has none.
  constexpr float unit(uint32_t largest) const {
    const float unit = chunks::float_of(largest) / static_cast<float>(most);
    if (!representable(unit)) return chunks::float_of(chunks::kNan);
    return unit < kLeastUnit ? 0 : unit;
  }
  // What absolute values are multiplied by.
  static constexpr float inverse(float unit) { return unit == 0 ? 0 : kOne / unit; }

  // Whether an encoder writes it; `groups` are those of its chunk.
  bool valid(float unit, const std::byte* groups, size_t size) const {
    return empty(unit) ? chunks::all_zero(groups, size) : valid(unit);
  }
  // Whether no bit of its chunk is set; of other units, whether an encoder writes it.
  static constexpr bool empty(float unit) {
    return chunks::word_of(unit) == chunks::kNan || chunks::word_of(unit) == 0;
  }
  constexpr bool valid(float unit) const { return unit >= kLeastUnit && representable(unit); }

  // The magnitude of element `index` of absolute value scaled / kOne, in units: up with the
  // probability of the fraction.
  constexpr uint32_t round(float scaled, uint64_t seed, uint64_t index) const {
    const uint32_t drawn = random_bits(seed, index) >> (32 - kFractionBits);
    const uint32_t level = (static_cast<uint32_t>(scaled) + drawn) >> kFractionBits;
    return level < most ? level : most;
  }

 private:
  constexpr bool representable(float unit) const {  // false for NaN, too
    return chunks::finite(static_cast<float>(most) * unit);
  }
};

}  // namespace wirepress::qsgd
