// SPDX-License-Identifier: Apache-2.0
// How a frame is cut into tiles, boxes of one size but at its upper edges; their copying; and the
// payload of a record that holds one wirepress frame for each tile (spec/store.md).
#pragma once

#include <vector>

#include "store/format.hpp"

namespace wirepress::store {

constexpr uint64_t kMostTiles = 1 << 20;

// Four extents or strides (bytes), outermost first. With fewer dimensions the first ones are 1 (0).
struct Box {
  uint64_t extent[WPR_MAX_DIMS] = {1, 1, 1, 1};
};
struct Strides {
  uint64_t bytes[WPR_MAX_DIMS] = {};
};

struct Tile {
  Box box;
  uint64_t offset = 0;  // of its first element in the frame, bytes
  uint64_t size = 0;    // bytes
};

class Grid {
 public:
  // extents: n_dims of them; all 0: boxes of about 256 KiB.
  static Status make(const Head& head, const uint64_t* extents, Grid* grid);

  uint64_t n_tiles() const { return n_tiles_; }
  Tile tile(uint64_t i) const;  // in C order of the boxes
  uint64_t largest() const { return tile_size_; }
  const Strides& strides() const { return strides_; }  // of the frame
  const uint64_t* shape_of(const Tile& tile) const { return tile.box.extent + lead_; }
  // As make takes them, unused ones 0.
  void extents(uint64_t* out) const;
  int n_dims() const { return n_dims_; }
  uint64_t element_size() const { return element_size_; }
  bool operator==(const Grid& other) const;

 private:
  int n_dims_ = 0;
  int lead_ = WPR_MAX_DIMS;  // dimensions that were put before
  Box shape_, box_, count_;
  Strides strides_;
  uint64_t element_size_ = 1, n_tiles_ = 1, tile_size_ = 0;
};

Strides packed(const Box& box, uint64_t element_size);
// The caller's strides of a tile, NULL: packed. Fails where rows are not contiguous.
Status strides_of(const Grid& grid, const Tile& tile, const uint64_t* given, Strides* strides);
bool is_packed(const Box& box, const Strides& strides, uint64_t element_size);
void copy_box(const Box& box, uint64_t element_size, const std::byte* src, const Strides& from,
              std::byte* dst, const Strides& to);

// Where the frames of tiles begin in a payload.
uint64_t tiles_head_size(uint64_t n_tiles);
void write_tiles_head(const Grid& grid, std::byte* payload);
void write_tile_entry(uint64_t tile, uint64_t offset, uint64_t size, std::byte* payload);
// Trusts nothing.
Status read_tiles(ConstBytes payload, const Head& head, Grid* grid, std::vector<ConstBytes>* tiles);

}  // namespace wirepress::store
