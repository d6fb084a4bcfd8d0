// SPDX-License-Identifier: Apache-2.0
#include "frames.hpp"

#include <algorithm>
#include <stdexcept>

namespace rtm {

const std::vector<std::string>& policies() {
  static const std::vector<std::string> all = {"none", "memory", "disk", "compressed", "in-worker"};
  return all;
}

bool compresses(const std::string& policy) {
  return policy == "compressed" || policy == "in-worker";
}

Frames::Frames(const Storage& storage, Size image, const Tiling& tiling)
    : image_(image), tiling_(tiling) {
  const auto known = std::find(policies().begin() + 1, policies().end(), storage.policy);
  std::vector<const char*> options;
  for (const std::string& text : storage.options) options.push_back(text.c_str());
  wpr_store_config config = {};
  config.dtype = WPR_FLOAT32;
  config.n_dims = 3;
  const int shape[] = {image.z, image.y, image.x};
  const int tile[] = {tiling.n_z, tiling.n_y, image.x};
  std::copy_n(shape, 3, config.shape);
  std::copy_n(tile, 3, config.tile);
  config.policy = static_cast<wpr_store_policy>(known - policies().begin() - 1);
  config.recipe = storage.recipe.c_str();
  config.engine = storage.engine.empty() ? nullptr : storage.engine.c_str();
  config.options = options.data();
  config.n_options = options.size();
  config.memory = storage.memory;
  config.servants = storage.servants;
  config.pin = storage.cores.data();
  config.n_pin = storage.cores.size();
  config.nodes = storage.nodes.data();
  config.n_nodes = storage.nodes.size();
  config.direct = storage.direct;
  config.reserve = storage.reserve;
  wpr_store* store = nullptr;
  const wpr_status status = wpr_store_create(storage.path.c_str(), &config, &store);
  store_.reset(store);
  if (!store) throw std::bad_alloc();
  check(status);
}

void Frames::check(wpr_status status) const {
  if (status != WPR_OK) throw std::runtime_error(wpr_store_error(store_.get()));
}

uint64_t Frames::number(int tile_z, int tile_y) const {
  return static_cast<uint64_t>(tile_z) * static_cast<uint64_t>(tiling_.along_y(image_)) +
         static_cast<uint64_t>(tile_y);
}

void Frames::put(int step, int tile_z, int tile_y, const float* src, ptrdiff_t row,
                 ptrdiff_t plane) {
  const uint64_t strides[] = {4 * static_cast<uint64_t>(plane), 4 * static_cast<uint64_t>(row), 4};
  check(wpr_store_put_tile(store_.get(), static_cast<uint64_t>(step), number(tile_z, tile_y), src,
                           strides));
}

void Frames::get(int step, int tile_z, int tile_y, float* dst) {
  check(wpr_store_get_tile(store_.get(), static_cast<uint64_t>(step), number(tile_z, tile_y), dst,
                           nullptr));
}

void Frames::read_backwards_from(int step) {
  check(wpr_store_prefetch(store_.get(), static_cast<uint64_t>(step), -1));
}

void Frames::close() { check(wpr_store_close(store_.get())); }

wpr_store_stats Frames::stats() const {
  wpr_store_stats stats;
  wpr_store_get_stats(store_.get(), &stats);
  return stats;
}

bool Frames::is_direct() const {
  wpr_store_info info;
  wpr_store_get_info(store_.get(), &info);
  return info.direct != 0;
}

std::vector<wpr_store_frame> Frames::list() const {
  std::vector<wpr_store_frame> frames;
  wpr_store_frame frame;
  for (uint64_t step = 0; wpr_store_frame_from(store_.get(), step, &frame); step = frame.step + 1)
    frames.push_back(frame);
  return frames;
}

}  // namespace rtm
