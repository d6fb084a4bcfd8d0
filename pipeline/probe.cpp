// SPDX-License-Identifier: Apache-2.0
#include "pipeline/probe.hpp"

#include <array>
#include <numeric>

#include "base/noise.hpp"

namespace wirepress {
namespace {

using namespace noise;

const std::array<uint32_t, kSample + 1>& weights() {
  static const auto table = [] {
    std::array<uint32_t, kSample + 1> result{};
    for (uint32_t i = 0; i <= kSample; ++i) result[i] = weight(i);
    return result;
  }();
  return table;
}

// Equal bytes, of which gradients and fields are full, cost the least here and the most when they
// are counted.
bool has_few_values(const std::byte* first, size_t step) {
  std::array<uint8_t, 256> seen{};
  for (size_t w = 0; w < kWindows; ++w)
    for (size_t i = 0; i < kPeek; ++i) seen[static_cast<uint8_t>(first[w * step + i])] = 1;
  return std::accumulate(seen.begin(), seen.end(), 0u) < kFewValues;
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
  uint32_t sum = 0;
  for (size_t v = 0; v < 256; ++v) sum += weights()[even[v] + odd[v]];
  return sum < kMostWeight;
}

}  // namespace

bool looks_incompressible(ConstBytes bytes) {
  return bytes.size() >= kLeastSize && is_noise(bytes.data(), step_of(bytes.size()));
}

Status looks_incompressible(const Place& place, ConstBytes bytes, bool* answer) {
  *answer = false;
  if (bytes.size() < kLeastSize) return {};
  std::array<std::byte, kSample> sample;
  WPR_TRY(place.memory->download(place.device, sample.data(), bytes.data(), kWindow,
                                 step_of(bytes.size()), kWindows));
  *answer = is_noise(sample.data(), kWindow);
  return {};
}

}  // namespace wirepress
