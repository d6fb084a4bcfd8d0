// SPDX-License-Identifier: Apache-2.0
// Lorenzo's predictor: a value is what its neighbours towards the origin say if the field is a sum
// of functions that each miss one dimension. Better than interpolation where bounds are tight.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "codecs/sz3/grid.hpp"

namespace wirepress::sz3 {

// What the rows next to a row add to the prediction of its values: change[k] is the sum of
// (r[k] - r[k-1]) over the neighbour rows r, with the sign of an odd number of steps.
template <typename T>
void row_changes(const Grid& grid, const T* row, const std::array<size_t, kMaxDims>& at,
                 std::vector<T>* change) {
  const unsigned outer = grid.n_dims - 1;
  std::fill(change->begin(), change->end(), T{0});
  for (unsigned steps = 1; steps < 1u << outer; ++steps) {
    size_t distance = 0;
    bool inside = true;
    for (unsigned i = 0; i < outer; ++i) {
      if ((steps >> i & 1) == 0) continue;
      inside &= at[i] != 0;
      distance += grid.stride(i);
    }
    if (!inside) continue;
    const T* near = row - distance;
    const T sign = std::popcount(steps) % 2 != 0 ? T{1} : T{-1};
    (*change)[0] += sign * near[0];
    for (size_t k = 1; k < change->size(); ++k) (*change)[k] += sign * (near[k] - near[k - 1]);
  }
}

// Calls visit(value, predicted) for all values in C order; it replaces the value.
template <typename T, typename Visit>
void visit_by_lorenzo(const Grid& grid, T* values, Visit visit) {
  const unsigned outer = grid.n_dims - 1;
  std::vector<T> change(grid.extent[outer]);
  std::array<size_t, kMaxDims> at{};
  const size_t rows = grid.count() / change.size();
  for (size_t i = 0; i < rows; ++i) {
    T* row = values + i * change.size();
    row_changes(grid, row, at, &change);
    T last = 0;
    for (size_t k = 0; k < change.size(); ++k) {
      visit(row[k], static_cast<T>(last + change[k]));
      last = row[k];
    }
    for (unsigned axis = outer; axis-- > 0;) {
      if (++at[axis] < grid.extent[axis]) break;
      at[axis] = 0;
    }
  }
}

}  // namespace wirepress::sz3
