// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace rtm {
namespace {

constexpr double kBorders[] = {0, 1e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1};
constexpr const char* kNames[] = {"0",     "< 0.1 %", "< 0.5 %", "< 1 %",
                                  "< 2 %", "< 5 %",   "< 10 %",  "more"};

// Energy about the mean, from sums.
double variance(double sum, double squares, double n) {
  return squares / n - (sum / n) * (sum / n);
}

}  // namespace

Difference difference(const std::vector<float>& reference, const std::vector<float>& x) {
  Difference result;
  const size_t n = reference.size();
  double sum = 0, energy = 0, error_sum = 0, error_energy = 0, size = 0, size_x = 0;
  double largest = 0, largest_error = 0;
  size_t counts[std::size(kNames)] = {}, counted = 0;
  for (size_t i = 0; i < n; ++i) {
    const double value = reference[i], error = static_cast<double>(x[i]) - value;
    sum += value;
    energy += value * value;
    error_sum += error;
    error_energy += error * error;
    size += std::fabs(value);
    size_x += std::fabs(static_cast<double>(x[i]));
    largest = std::max(largest, std::fabs(value));
    largest_error = std::max(largest_error, std::fabs(error));
    if (value == 0) continue;
    const double relative = std::fabs(error / value);
    size_t bin = 0;
    while (bin < std::size(kBorders) && (bin == 0 ? relative > 0 : relative >= kBorders[bin]))
      ++bin;
    ++counts[bin];
    ++counted;
  }
  for (size_t bin = 0; bin < std::size(kNames); ++bin)
    result.histogram.push_back(
        {kNames[bin],
         counted ? static_cast<double>(counts[bin]) / static_cast<double>(counted) : 0});
  result.equal = std::memcmp(reference.data(), x.data(), 4 * n) == 0;
  result.bias = size > 0 ? size_x / size - 1 : 0;
  result.largest = largest > 0 ? largest_error / largest : 0;
  if (error_energy == 0 || energy == 0) return result;
  const auto count = static_cast<double>(n);
  result.snr_db = 10 * std::log10(energy / error_energy);
  result.snr_amplitude_db =
      20 * std::log10(variance(sum, energy, count) / variance(error_sum, error_energy, count));
  return result;
}

}  // namespace rtm
