// SPDX-License-Identifier: Apache-2.0
#include "roofline.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace rtm {
namespace {

// Arrays of each worker: none of them fits a cache.
constexpr size_t kFloats = 24 << 20;
constexpr int kArrays = 4;
constexpr int kSteps = 4;  // of the wave in one turn

class Arrays {
 public:
  Arrays() {
    for (float*& array : arrays_) {
      array = map_floats(kFloats);
      std::fill_n(array, kFloats, 1.0F);
    }
  }
  ~Arrays() {
    for (float* array : arrays_) unmap_floats(array, kFloats);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  double copy() const {
    std::memcpy(arrays_[0], arrays_[1], 4 * kFloats);
    return 2 * 4 * kFloats;
  }
  double stream() const {
    float* __restrict next = arrays_[0];
    const float* __restrict u = arrays_[1];
    const float* __restrict c = arrays_[2];
    for (size_t i = 0; i < kFloats; ++i) next[i] = u[i] + c[i] * (u[i] - next[i]);
    return kBytesPerPoint * kFloats;
  }

 private:
  float* arrays_[kArrays];
};

// Something in every cell, so that nothing is as quick as zeros may be.
void stir(Wave& wave, Team& team) {
  const Size all = wave.grid().all();
  team.run([&](int worker) {
    for (int z = worker; z < all.z; z += team.size()) {
      for (int y = 0; y < all.y; ++y) {
        for (int x = 0; x < all.x; ++x) {
          const auto value = static_cast<float>((x * 7 + y * 13 + z * 29) % 101) / 101;
          *wave.after(0).at(x, y, z) = *wave.after(1).at(x, y, z) = value;
        }
      }
    }
  });
}

}  // namespace

Roofline measure_roofline(Wave& wave, Team& team, double seconds) {
  Roofline result;
  stir(wave, team);
  std::vector<double> bytes(static_cast<size_t>(team.size()));
  // Bytes or points a second of all workers; body(worker) says how many were its.
  const auto rate = [&](int worker, const std::function<double()>& body, double* best) {
    team.meet();
    const double began = now();
    bytes[static_cast<size_t>(worker)] = body();
    team.meet();
    const double took = now() - began;
    if (worker != 0) return;
    double sum = 0;
    for (const double mine : bytes) sum += mine;
    *best = std::max(*best, sum / took);
  };
  team.run([&](int worker) {
    const Arrays arrays;
    const auto steps = [&] {
      for (int t = 0; t < kSteps; ++t) {
        wave.step(worker, t, {});
        team.meet();
      }
      return static_cast<double>(kSteps * wave.n_points()) / team.size();
    };
    bool more = true;
    for (double began = now(); more;) {
      rate(
          worker, [&] { return arrays.copy(); }, &result.copy_rate);
      rate(
          worker, [&] { return arrays.stream(); }, &result.stream_rate);
      rate(worker, steps, &result.points_rate);
      // The first worker decides for all.
      if (worker == 0) bytes[0] = now() - began < seconds ? 1 : 0;
      team.meet();
      more = bytes[0] > 0;
    }
  });
  return result;
}

}  // namespace rtm
