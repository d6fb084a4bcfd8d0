// SPDX-License-Identifier: Apache-2.0
// Regula falsi between what fits and what does not, in whole numbers.
#include "rivals.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rtm {

const std::vector<Scale>& scales() {
  static const std::vector<Scale> all = {{"bx:m", 0, 23, {5, 13}},
                                         {"fre:m", 0, 23, {5, 13}},
                                         {"zfp:precision", 1, 32, {16, 22}},
                                         {"zfp:rate", 1, 32, {8, 16}}};
  return all;
}

int most_exact(const Scale& scale, uint64_t size, const std::function<uint64_t(int)>& size_of) {
  int fits = scale.least - 1, too_large = scale.most + 1;
  std::map<int, double> sizes;
  while (too_large - fits > 1) {
    int n = scale.first[std::min<size_t>(sizes.size(), 1)];
    if (sizes.size() > 1) {
      const auto [low, low_size] = *sizes.begin();
      const auto [high, high_size] = *sizes.rbegin();
      const double step = (high_size - low_size) / (high - low);
      n = step > 0
              ? low + static_cast<int>(std::floor((static_cast<double>(size) - low_size) / step))
              : too_large - 1;
    }
    n = std::clamp(n, fits + 1, too_large - 1);
    const uint64_t mine = size_of(n);
    sizes[n] = static_cast<double>(mine);
    (mine <= size ? fits : too_large) = n;
  }
  return fits;
}

}  // namespace rtm
