// SPDX-License-Identifier: Apache-2.0
// How far an image is from the one that uncompressed frames gave.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rtm {

struct Bin {
  std::string name;  // "< 2 %"
  double share = 0;  // of the points
};

struct Difference {
  bool equal = false;           // bit for bit
  double snr_db = 0;            // 10 log10 of the ratio of energies; 0 where equal
  double snr_amplitude_db = 0;  // 20 log10 of the ratio of variances, as some papers have it
  double bias = 0;              // sum |x| / sum |reference| - 1
  double largest = 0;           // largest error by the largest value
  std::vector<Bin> histogram;   // of the relative error of each point that is not 0
};

Difference difference(const std::vector<float>& reference, const std::vector<float>& x);

}  // namespace rtm
