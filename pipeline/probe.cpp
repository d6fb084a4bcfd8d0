// SPDX-License-Identifier: Apache-2.0
#include "pipeline/probe.hpp"

#include <array>
#include <cmath>
#include <numeric>

namespace wirepress {
namespace {

constexpr size_t kWindows = 8, kWindow = 512, kSample = kWindows * kWindow;

// Uniform noise of 4096 bytes measures 8 - 255 / (2 * 4096 * ln 2) = 7.955 bits on average, with a
// deviation of 0.004. 7.92 is eight deviations below; dense float32 gradients measure 7.3 to 7.5.
constexpr double kNoise = 7.92;

// count * log2(count) for every count a sample can have.
const std::array<float, kSample + 1>& weights() {
  static const auto table = [] {
    std::array<float, kSample + 1> result{};
    for (size_t i = 1; i <= kSample; ++i)
      result[i] = static_cast<float>(static_cast<double>(i) * std::log2(static_cast<double>(i)));
    return result;
  }();
  return table;
}

// Uniform noise has 221 of all 256 values in so many bytes, with a deviation of 5.
constexpr size_t kPeek = 64;  // of each window
constexpr int kFewValues = 180;

// Whether there are so few values that no noise is left to find. Equal bytes, of which gradients
// and fields are full, cost the least here and the most when they are counted.
bool has_few_values(const std::byte* first, size_t step) {
  std::array<uint8_t, 256> seen{};
  for (size_t w = 0; w < kWindows; ++w)
    for (size_t i = 0; i < kPeek; ++i) seen[static_cast<uint8_t>(first[w * step + i])] = 1;
  return std::accumulate(seen.begin(), seen.end(), 0) < kFewValues;
}

// Windows that begin `step` bytes apart.
bool is_noise(const std::byte* first, size_t step) {
  if (has_few_values(first, step)) return false;
  // Two tables, because a byte that repeats would otherwise wait for its own last increment.
  std::array<uint16_t, 256> even{}, odd{};
  for (size_t w = 0; w < kWindows; ++w) {
    const std::byte* window = first + w * step;
    for (size_t i = 0; i < kWindow; i += 2) {
      ++even[static_cast<uint8_t>(window[i])];
      ++odd[static_cast<uint8_t>(window[i + 1])];
    }
  }
  double sum = 0;
  for (size_t v = 0; v < 256; ++v) sum += weights()[even[v] + odd[v]];
  const double entropy = std::log2(static_cast<double>(kSample)) - sum / kSample;
  return entropy > kNoise;
}

size_t step_of(size_t size) { return (size - kWindow) / (kWindows - 1); }

}  // namespace

bool looks_incompressible(ConstBytes bytes) {
  return bytes.size() >= 2 * kSample && is_noise(bytes.data(), step_of(bytes.size()));
}

Status looks_incompressible(const Place& place, ConstBytes bytes, bool* answer) {
  *answer = false;
  if (bytes.size() < 2 * kSample) return {};
  std::array<std::byte, kSample> sample;
  WPR_TRY(place.memory->download(place.device, sample.data(), bytes.data(), kWindow,
                                 step_of(bytes.size()), kWindows));
  *answer = is_noise(sample.data(), kWindow);
  return {};
}

}  // namespace wirepress
