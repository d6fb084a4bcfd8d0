// SPDX-License-Identifier: Apache-2.0
// One time step of the acoustic wave equation of constant density, eighth order in space (25
// points), second in time, with friction in the sponge:
//
//   next = u + (1 - s)(u - previous) + (v dt / h)^2 L u
#pragma once

#include <cstddef>

namespace rtm {

constexpr int kPlanes = 2;  // that are computed at once, where there are as many

// Rows of kPlanes planes or one. next holds `previous` and is written over. What is behind n in a
// row, up to a whole vector, must be zeros in next, u and c2; it stays so.
struct Rows {
  float* next;
  const float* u;
  const float* c2;          // (v dt / h)^2
  const float* keep_x;      // 1 - s of each cell, along x
  const float* friction_y;  // s along y, first for the first row
  const float* friction_z;  // s along z, first for the first plane
  ptrdiff_t row, plane;     // floats
  int n;                    // cells of a row
  int n_rows, n_planes;
};

using StepRows = void (*)(const Rows& rows);

struct Stencil {
  const char* name;
  StepRows step;
};

// The best for this processor.
Stencil best_stencil();
constexpr int kBytesPerPoint = 16;  // read u, previous and c2, write next: 4 bytes each

}  // namespace rtm
