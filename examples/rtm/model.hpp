// SPDX-License-Identifier: Apache-2.0
// Velocity models made from a seed: the same seed and size give the same earth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "field.hpp"

namespace rtm {

// Metres a second, over the image, x fastest.
struct Model {
  Size size;
  std::vector<float> v;
  float at(int x, int y, int z) const { return v[index(x, y, z)]; }
  size_t index(int x, int y, int z) const {
    return (static_cast<size_t>(z) * static_cast<size_t>(size.y) + static_cast<size_t>(y)) *
               static_cast<size_t>(size.x) +
           static_cast<size_t>(x);
  }
  float slowest() const;
  float fastest() const;
};

// kind "layered": beds that dip and fold, faster with depth; "salt": the same around a body of
// 4500 m/s; "flat": beds that do not fold; "constant".
Model make_model(const std::string& kind, Size size, uint64_t seed);
// What a migration knows of it: the slowness, averaged over boxes of 2 radius + 1 cells, twice.
Model smoothed(const Model& model, int radius);

// Depths in cells at which the velocity jumps by more than a part `jump` below (x, y).
std::vector<int> reflectors(const Model& model, int x, int y, float jump);

}  // namespace rtm
