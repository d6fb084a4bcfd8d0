// SPDX-License-Identifier: Apache-2.0
#include "wave.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace rtm {
namespace {

// Ten planes of them, and what goes with them, fit a cache of 1 MiB.
constexpr int kBlockRows = 64;
constexpr float kMostFriction = 0.12F;

// Friction of each cell along one dimension: it rises with the square, into the sponge.
std::vector<float> friction(int n, int sponge) {
  std::vector<float> s(static_cast<size_t>(n), 0);
  for (int i = 0; i < sponge; ++i) {
    const float depth = static_cast<float>(sponge - i) / static_cast<float>(sponge);
    s[static_cast<size_t>(i)] = s[static_cast<size_t>(n - 1 - i)] = kMostFriction * depth * depth;
  }
  return s;
}

}  // namespace

Tiling tiling_for(Size image, int n_workers) {
  constexpr int kRows = 8;
  const int pieces = n_workers * ((image.y + n_workers * kRows - 1) / (n_workers * kRows));
  return {(image.y + pieces - 1) / pieces, std::min(8, image.z)};
}

Wave::Wave(const Grid& grid, const Model& velocity, float spacing, float time_step, Team& team,
           const Tiling& tiling)
    : grid_(grid), tiling_(tiling), fields_{Field(grid), Field(grid)}, c2_(grid) {
  const Size all = grid.all();
  share_out(team.size());
  friction_y_ = friction(all.y, grid.sponge);
  friction_z_ = friction(all.z, grid.sponge);
  keep_x_ = friction(all.x, grid.sponge);
  for (float& value : keep_x_) value = 1 - value;
  keep_x_.resize(keep_x_.size() + kVector, 1);
  const float factor = time_step / spacing;
  team.run([&](int worker) { set_up(worker, velocity, factor * factor); });
}

// Borders lie between tiles, as near as that allows to equal shares.
void Wave::share_out(int n_workers) {
  const int all = grid_.all().y, n_tiles = tiling_.along_y(grid_.image);
  int begin = 0;
  for (int worker = 1; worker <= n_workers; ++worker) {
    const int wanted = all * worker / n_workers - grid_.sponge;
    const int tile = std::clamp((wanted + tiling_.n_y / 2) / tiling_.n_y, 0, n_tiles);
    const int end = worker == n_workers ? all : std::max(begin, grid_.sponge + tile * tiling_.n_y);
    shares_.push_back({begin, std::min(end, all)});
    begin = shares_.back().end_y;
  }
}

void Wave::set_up(int worker, const Model& velocity, float factor) {
  const Size image = grid_.image, all = grid_.all();
  const Share share = shares_[static_cast<size_t>(worker)];
  for (int z = 0; z < all.z; ++z) {
    const int model_z = std::clamp(z - grid_.sponge, 0, image.z - 1);
    for (int y = share.first_y; y < share.end_y; ++y) {
      const int model_y = std::clamp(y - grid_.sponge, 0, image.y - 1);
      float* c2 = c2_.at(0, y, z);
      for (int x = 0; x < all.x; ++x) {
        const float v = velocity.at(std::clamp(x - grid_.sponge, 0, image.x - 1), model_y, model_z);
        c2[x] = v * v * factor;
      }
      for (const Field& field : fields_)
        std::memset(field.at(0, y, z), 0, 4 * static_cast<size_t>(all.x));
    }
  }
}

void Wave::clear(Team& team) {
  team.run([&](int worker) {
    const Share share = shares_[static_cast<size_t>(worker)];
    for (int z = 0; z < grid_.all().z; ++z) {
      for (int y = share.first_y; y < share.end_y; ++y) {
        for (const Field& field : fields_)
          std::memset(field.at(0, y, z), 0, 4 * static_cast<size_t>(grid_.all().x));
      }
    }
  });
}

void Wave::step(int worker, int t, const Hooks& hooks) {
  const Share share = shares_[static_cast<size_t>(worker)];
  const int rows = std::max(1, kBlockRows / tiling_.n_y) * tiling_.n_y;
  const int all_z = grid_.all().z, image_end = grid_.sponge + grid_.image.z;
  // Blocks begin where tiles do.
  int y0 = share.first_y;
  while (y0 < share.end_y) {
    const int past = std::max(0, y0 - grid_.sponge) / tiling_.n_y * tiling_.n_y;
    const int y1 = std::min(share.end_y, grid_.sponge + past + rows);
    chunk(worker, t, hooks, y0, y1, 0, grid_.sponge);
    for (int z = grid_.sponge, tile = 0; z < image_end; z += tiling_.n_z, ++tile) {
      chunk(worker, t, hooks, y0, y1, z, std::min(z + tiling_.n_z, image_end));
      if (hooks.tile) tiles(worker, hooks, y0, y1, tile);
    }
    chunk(worker, t, hooks, y0, y1, image_end, all_z);
    y0 = y1;
  }
}

void Wave::chunk(int worker, int t, const Hooks& hooks, int y0, int y1, int z0, int z1) const {
  const Field& u = fields_[t & 1];
  const Field& next = fields_[(t + 1) & 1];
  for (int z = z0, n_planes = 0; z < z1; z += n_planes) {
    n_planes = z1 - z >= kPlanes ? kPlanes : 1;
    const Rows rows = {next.at(0, y0, z),
                       u.at(0, y0, z),
                       c2_.at(0, y0, z),
                       keep_x_.data(),
                       friction_y_.data() + y0,
                       friction_z_.data() + z,
                       u.row(),
                       u.plane(),
                       grid_.all().x,
                       y1 - y0,
                       n_planes};
    stencil_.step(rows);
    for (int i = z; hooks.plane && i < z + n_planes; ++i)
      hooks.plane(worker, next.at(0, 0, i), i, y0, y1);
  }
}

void Wave::tiles(int worker, const Hooks& hooks, int y0, int y1, int tile_z) const {
  const int image_end = grid_.sponge + grid_.image.y;
  const int first = (std::max(y0, grid_.sponge) - grid_.sponge) / tiling_.n_y;
  for (int tile = first; grid_.sponge + tile * tiling_.n_y < std::min(y1, image_end); ++tile)
    hooks.tile(worker, tile_z, tile);
}

float ricker(float frequency, float time) {
  const float a = std::numbers::pi_v<float> * frequency * (time - 1.2F / frequency);
  return (1 - 2 * a * a) * std::exp(-a * a);
}

float stable_time_step(float spacing, float fastest) {
  // v dt / h < 2 / sqrt(3 sum |c|), where sum |c| = 6.50 of the eighth-order coefficients
  constexpr float kLimit = 0.4528F, kMargin = 0.85F;
  return kMargin * kLimit * spacing / fastest;
}

}  // namespace rtm
