// SPDX-License-Identifier: Apache-2.0
// The frames of a pass, in a frame store: put and got by tiles, from all workers.
#pragma once

#include <wirepress/store.h>

#include <memory>
#include <string>
#include <vector>

#include "wave.hpp"

namespace rtm {

struct Storage {
  std::string policy = "memory";  // none, memory, disk, compressed, in-worker
  std::string recipe = "bx:m=5";
  std::string engine;
  std::vector<std::string> options;  // key, value, ...
  std::string path;                  // of the file
  uint64_t memory = 0;
  int servants = 1;
  std::vector<int> cores, nodes;  // of the servants
  bool direct = false;            // writes past the page cache
  uint64_t reserve = 0;           // bytes of disk, ahead of what is written
};

const std::vector<std::string>& policies();
bool compresses(const std::string& policy);

class Frames {
 public:
  Frames(const Storage& storage, Size image, const Tiling& tiling);

  // The tile's first cell; row and plane: floats from one to the next.
  void put(int step, int tile_z, int tile_y, const float* src, ptrdiff_t row, ptrdiff_t plane);
  // Packed: all x, then y, then z.
  void get(int step, int tile_z, int tile_y, float* dst);
  void read_backwards_from(int step);
  void close();

  wpr_store_stats stats() const;
  bool is_direct() const;
  std::vector<wpr_store_frame> list() const;
  size_t frame_size() const { return 4 * image_.n(); }

 private:
  void check(wpr_status status) const;
  uint64_t number(int tile_z, int tile_y) const;

  Size image_;
  Tiling tiling_;
  std::unique_ptr<wpr_store, void (*)(wpr_store*)> store_{nullptr, wpr_store_free};
};

}  // namespace rtm
