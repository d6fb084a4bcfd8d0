// SPDX-License-Identifier: Apache-2.0
// A wave in the earth and its step in time. Each worker has rows of its own along y, in blocks that
// stay in its cache while they go down in z.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "field.hpp"
#include "model.hpp"
#include "stencil.hpp"
#include "team.hpp"

namespace rtm {

// Pieces of the image that a worker hands on whole: all x, n_y rows, n_z planes.
struct Tiling {
  int n_y = 8, n_z = 8;
  int along_y(Size image) const { return (image.y + n_y - 1) / n_y; }
  int along_z(Size image) const { return (image.z + n_z - 1) / n_z; }
};

// About eight rows, so that the workers get equal shares.
Tiling tiling_for(Size image, int n_workers);

// What happens to a new wave while it is in the cache. Empty ones are not called.
struct Hooks {
  // Plane z, rows y0 to y1 - 1 are new; in coordinates of all cells.
  std::function<void(int worker, float* plane, int z, int y0, int y1)> plane;
  // A tile of the image is new: its number along z and y.
  std::function<void(int worker, int z, int y)> tile;
};

class Wave {
 public:
  // spacing in m, time step in s. Pages lie where the worker runs that touches them first.
  Wave(const Grid& grid, const Model& velocity, float spacing, float time_step, Team& team,
       const Tiling& tiling);

  // The worker's part of step t: from the fields of t and t - 1 to that of t + 1. All workers must
  // have done step t - 1.
  void step(int worker, int t, const Hooks& hooks);
  // To rest.
  void clear(Team& team);

  const Grid& grid() const { return grid_; }
  const Tiling& tiling() const { return tiling_; }
  // The field after step t.
  const Field& after(int t) const { return fields_[(t + 1) & 1]; }
  float c2(int x, int y, int z) const { return *c2_.image_at(x, y, z); }
  const char* kernel() const { return stencil_.name; }
  size_t n_points() const { return grid_.all().n(); }
  size_t memory() const { return 3 * c2_.size(); }

 private:
  struct Share {
    int first_y, end_y;  // of all cells
  };
  void share_out(int n_workers);
  void set_up(int worker, const Model& velocity, float factor);
  void chunk(int worker, int t, const Hooks& hooks, int y0, int y1, int z0, int z1) const;
  void tiles(int worker, const Hooks& hooks, int y0, int y1, int tile_z) const;

  Grid grid_;
  Tiling tiling_;
  Stencil stencil_ = best_stencil();
  Field fields_[2], c2_;
  std::vector<Share> shares_;
  std::vector<float> keep_x_, friction_y_, friction_z_;
};

// Ricker's wavelet of a peak frequency, at a time in s; it begins at 0.
float ricker(float frequency, float time);
// The largest step in s at which the scheme is stable, with some margin.
float stable_time_step(float spacing, float fastest);

}  // namespace rtm
