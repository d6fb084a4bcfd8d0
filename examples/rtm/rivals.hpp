// SPDX-License-Identifier: Apache-2.0
// Codecs at equal size: a rival's frames, and the most exact of ours that are not larger.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rtm {

// Recipes that end with a number: the larger it is, the more exact and the larger are frames.
struct Scale {
  std::string recipe;  // "bx:m": bx:m=0, bx:m=1, ...
  int least, most;
  int first[2];  // what to try first
  std::string at(int n) const { return recipe + "=" + std::to_string(n); }
};

const std::vector<Scale>& scales();

// The largest number with which frames take at most `size` bytes in all; least - 1: none. size_of
// is asked as rarely as can be: what it says grows by about as much with each step.
int most_exact(const Scale& scale, uint64_t size, const std::function<uint64_t(int)>& size_of);

}  // namespace rtm
