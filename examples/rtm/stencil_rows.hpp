// SPDX-License-Identifier: Apache-2.0
// The kernel for vectors of RTM_LANES floats: vector types of the compiler, included by a file for
// each instruction set.
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
constexpr float kWeight[] = {0, 8.0F / 5, -1.0F / 5, 8.0F / 315, -1.0F / 560};

// Rows that are asked for ahead, into the second cache: the first is full of the rows in use.
constexpr int kAhead = 2;
constexpr int kSecondCache = 2;

// What begins `shift` values after the first vector, of two that follow each other.
template <int shift, int... i>
inline Vector shifted(Vector first, Vector second, std::integer_sequence<int, i...> /*lanes*/) {
  return __builtin_shufflevector(first, second, (shift + i)...);
}

using Lanes = std::make_integer_sequence<int, RTM_LANES>;

// The values r before and after `here`, which lies at `at`, between the other two; added. Wide
// vectors that cross a line of the cache are loaded twice, so they are joined from what is there.
template <int r>
inline Vector both_sides(const float* at, Vector before, Vector here, Vector after) {
  if constexpr (RTM_LANES <= 4) return load(at - r) + load(at + r);
  return shifted<RTM_LANES - r>(before, here, Lanes()) + shifted<r>(here, after, Lanes());
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
inline void step_row(const Rows& rows, int y) {
  const ptrdiff_t row = rows.row, plane = rows.plane;
  const ptrdiff_t at = y * row;
  const int n = rows.n;
  const float* u = rows.u + at;
  float* next = rows.next + at;
  const float* c2 = rows.c2 + at;
  const float* keep = rows.keep_x;
  float friction[n_planes];
  for (int z = 0; z < n_planes; ++z) friction[z] = rows.friction_y[y] + rows.friction_z[z];
  Vector before[n_planes];
  for (int z = 0; z < n_planes; ++z) before[z] = load(u + z * plane - RTM_LANES);
  for (ptrdiff_t x = 0; x < n;
       x += RTM_LANES, u += RTM_LANES, next += RTM_LANES, c2 += RTM_LANES, keep += RTM_LANES) {
    // Rows are too short for the hardware to see what comes.
    if (x % kVector == 0) {
      for (int z = 0; z < n_planes; ++z) {  // GCC drops a lambda that only prefetches
        __builtin_prefetch(u + (z + kRadius) * plane + kAhead * row, 0, kSecondCache);
        __builtin_prefetch(next + z * plane + kAhead * row, 0, kSecondCache);
        __builtin_prefetch(c2 + z * plane + kAhead * row, 0, kSecondCache);
      }
    }
    Vector along[n_planes + 2 * kRadius];
    unrolled<n_planes + 2 * kRadius>([&](auto z) { along[z] = load(u + (z - kRadius) * plane); });
    unrolled<n_planes>([&](auto z) {
      const Vector* here = along + kRadius + z;
      const float* mine = u + z * plane;
      const Vector after = load(mine + RTM_LANES);
      Vector sum = kMiddle * here[0], sum_y = {}, sum_z = {};
      unrolled<kRadius>([&](auto i) {
        constexpr int r = decltype(i)::value + 1;
        sum += kWeight[r] * both_sides<r>(mine, before[z], here[0], after);
        sum_y += kWeight[r] * (load(mine - r * row) + load(mine + r * row));
        sum_z += kWeight[r] * (here[-r] + here[r]);
      });
      sum += sum_y + sum_z;
      before[z] = here[0];
      const Vector moved = (load(keep) - friction[z]) * (here[0] - load(next + z * plane));
      store(next + z * plane, here[0] + moved + load(c2 + z * plane) * sum);
    });
  }
}

void step_rows(const Rows& rows) {
  for (int y = 0; y < rows.n_rows; ++y) {
    if (rows.n_planes == kPlanes) {
      step_row<kPlanes>(rows, y);
    } else {
      step_row<1>(rows, y);
    }
  }
}

}  // namespace
}  // namespace rtm
