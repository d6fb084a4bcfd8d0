// SPDX-License-Identifier: Apache-2.0
// The measure of noise in a sample of a block's bytes (pipeline/probe.hpp), in integers: cores and
// kernels of devices decide alike.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace wirepress::noise {

inline constexpr uint32_t kWindows = 8, kWindow = 512, kSample = kWindows * kWindow;
// Smaller blocks have no sample, and are no noise.
inline constexpr size_t kLeastSize = 2 * kSample;
// Windows begin so many bytes apart.
constexpr size_t step_of(size_t size) { return (size - kWindow) / (kWindows - 1); }

// Uniform noise has 221 of all 256 values in so many bytes, with a deviation of 5. Where the first
// ones of each window have fewer values, no noise is left to find.
inline constexpr uint32_t kPeek = 64;
inline constexpr uint32_t kFewValues = 180;

// count * log2(count) in units of 2^-16, for all counts of a sample.
constexpr uint32_t weight(uint32_t count) {
  if (count < 2) return 0;
  constexpr int kBits = 24;
  const int whole = static_cast<int>(std::bit_width(count)) - 1;
  uint64_t power = uint64_t{count} << (31 - whole);  // of 2, between 2^31 and 2^32
  uint64_t log = static_cast<uint64_t>(whole);
  for (int i = 0; i < kBits; ++i) {  // a square's logarithm is twice as large
    power = power * power >> 31;
    const uint64_t bit = power >> 32;
    power >>= bit;
    log = 2 * log + bit;
  }
  return static_cast<uint32_t>((count * log + (1u << (kBits - 17))) >> (kBits - 16));
}

// The entropy of a sample is log2(kSample) less the mean of its counts' weights. Uniform noise of
// 4096 bytes measures 8 - 255 / (2 * 4096 * ln 2) = 7.955 bits on average, with a deviation of
// 0.004. 7.92 is eight deviations below; dense float32 gradients measure 7.3 to 7.5. Noise has
// weights of less in sum than this.
inline constexpr uint32_t kMostWeight = static_cast<uint32_t>((12 - 7.92) * kSample * 65536);
static_assert(kSample == 4096 && weight(kSample) == 12 * kSample * 65536);

}  // namespace wirepress::noise
