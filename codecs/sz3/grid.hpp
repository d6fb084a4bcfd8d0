// SPDX-License-Identifier: Apache-2.0
// How a block lies, and which predictor it gets.
#pragma once

#include <array>

#include "base/kernel.hpp"

namespace wirepress::sz3 {

constexpr unsigned kLorenzo = 31;  // in place of an order: no interpolation

struct Grid {
  unsigned n_dims = 1;
  std::array<size_t, kMaxDims> extent{1, 1, 1, 1};  // in C order
  bool cubic = true;
  unsigned order = 0;  // which permutation of the dimensions, in lexicographic order

  size_t count() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  size_t stride(unsigned axis) const {
    size_t product = 1;
    for (unsigned i = axis + 1; i < n_dims; ++i) product *= extent[i];
    return product;
  }
  unsigned orders() const { return std::array{1u, 2u, 6u, 24u}[n_dims - 1]; }
};

}  // namespace wirepress::sz3
