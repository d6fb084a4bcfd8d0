// SPDX-License-Identifier: Apache-2.0
// The kernel for vectors of RTM_LANES floats: vector types of the compiler, included by a file for
// each instruction set.
#ifndef RTM_AHEAD
#define RTM_AHEAD 1
#endif
#include <type_traits>
#include <utility>

#include "field.hpp"
#include "stencil.hpp"

namespace rtm {
namespace {

using Vector = float __attribute__((vector_size(4 * RTM_LANES)));
// The same at any address.
using Loose = float __attribute__((vector_size(4 * RTM_LANES), aligned(4), may_alias));

inline Vector load(const float* at) { return *reinterpret_cast<const Loose*>(at); }
inline void store(float* at, Vector value) { *reinterpret_cast<Loose*>(at) = value; }

// Second derivative, eighth order; the middle counts for three dimensions.
constexpr float kMiddle = -3 * 205.0F / 72;
constexpr float k1 = 8.0F / 5, k2 = -1.0F / 5, k3 = 8.0F / 315, k4 = -1.0F / 560;

constexpr int kAhead = RTM_AHEAD;  // rows

inline Vector ring(const float* u, ptrdiff_t row, int r) {
  return (load(u - r) + load(u + r)) + (load(u - r * row) + load(u + r * row));
}

// Calls body(0), body(1) ... with constants: what they index can then lie in registers.
template <int n, class Body>
inline void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, n>());
}

// A row of n_planes planes at once: of the values along z, which lie farthest apart, most are then
// loaded once for all of them.
template <int n_planes>
inline void step_row(const Rows& rows, ptrdiff_t at, int y) {
  const ptrdiff_t row = rows.row, plane = rows.plane;
  const int n = rows.n;
  const float* u = rows.u + at;
  float* next = rows.next + at;
  const float* c2 = rows.c2 + at;
  const float* keep = rows.keep_x;
  float friction[n_planes];
  for (int z = 0; z < n_planes; ++z) friction[z] = rows.friction_y[y] + rows.friction_z[z];
  for (ptrdiff_t x = 0; x < n;
       x += RTM_LANES, u += RTM_LANES, next += RTM_LANES, c2 += RTM_LANES, keep += RTM_LANES) {
    // Rows are too short for the hardware to see what comes.
    if (x % kVector == 0) {
      unrolled<n_planes>([&](auto z) {
        __builtin_prefetch(u + (z + kRadius) * plane + kAhead * row);
        __builtin_prefetch(next + z * plane + kAhead * row, 1);
        __builtin_prefetch(c2 + z * plane + kAhead * row);
      });
    }
    Vector along[n_planes + 2 * kRadius];
    unrolled<n_planes + 2 * kRadius>([&](auto z) { along[z] = load(u + (z - kRadius) * plane); });
    unrolled<n_planes>([&](auto z) {
      const Vector* here = along + kRadius + z;
      const float* mine = u + z * plane;
      Vector sum = kMiddle * here[0];
      sum += k1 * (ring(mine, row, 1) + (here[-1] + here[1]));
      sum += k2 * (ring(mine, row, 2) + (here[-2] + here[2]));
      sum += k3 * (ring(mine, row, 3) + (here[-3] + here[3]));
      sum += k4 * (ring(mine, row, 4) + (here[-4] + here[4]));
      const Vector moved = (load(keep) - friction[z]) * (here[0] - load(next + z * plane));
      store(next + z * plane, here[0] + moved + load(c2 + z * plane) * sum);
    });
  }
}

void step_rows(const Rows& rows) {
  for (int y = 0; y < rows.n_rows; ++y) {
    const ptrdiff_t at = y * rows.row;
    if (rows.n_planes == kPlanes) {
      step_row<kPlanes>(rows, at, y);
    } else {
      step_row<1>(rows, at, y);
    }
  }
}

}  // namespace
}  // namespace rtm
