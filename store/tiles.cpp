// SPDX-License-Identifier: Apache-2.0
#include "store/tiles.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "base/bytes.hpp"

namespace wirepress::store {
namespace {

constexpr uint64_t kDefaultTile = 256 << 10;
constexpr size_t kExtents = 8 * WPR_MAX_DIMS;
constexpr size_t kEntry = 16;

uint64_t volume(const Box& box) {
  uint64_t n = 1;
  for (const uint64_t extent : box.extent) n *= extent;
  return n;
}

// Whole inner dimensions, as many of the outer ones as fit.
Box usual(Box box, uint64_t element_size) {
  for (uint64_t& extent : box.extent) {
    const uint64_t size = volume(box) * element_size;
    if (size <= kDefaultTile) break;
    const uint64_t inner = size / extent;
    extent = std::max<uint64_t>(1, kDefaultTile / inner);
  }
  return box;
}

}  // namespace

Status Grid::make(const Head& head, const uint64_t* extents, Grid* grid) {
  Grid made;
  made.n_dims_ = head.n_dims;
  made.lead_ = WPR_MAX_DIMS - head.n_dims;
  const auto lead = static_cast<size_t>(made.lead_);
  bool given = false;
  for (size_t i = 0; i < static_cast<size_t>(head.n_dims); ++i) {
    made.shape_.extent[lead + i] = head.shape[i];
    made.box_.extent[lead + i] = extents[i];
    given = given || extents[i];
  }
  made.element_size_ = head.raw_size / volume(made.shape_);
  if (!given) made.box_ = usual(made.shape_, made.element_size_);
  for (size_t i = 0; i < WPR_MAX_DIMS; ++i) {
    const uint64_t extent = made.box_.extent[i], whole = made.shape_.extent[i];
    if (extent < 1 || extent > whole)
      return fail(Code::kParameter,
                  "extent %zu of a tile is %" PRIu64 "; that of a frame is %" PRIu64, i - lead,
                  extent, whole);
    made.count_.extent[i] = (whole + extent - 1) / extent;
    made.n_tiles_ *= made.count_.extent[i];  // at most 2^48
    if (made.n_tiles_ > kMostTiles)
      return fail(Code::kParameter, "tiles this small cut a frame in more than %" PRIu64,
                  kMostTiles);
  }
  made.tile_size_ = volume(made.box_) * made.element_size_;
  made.strides_ = packed(made.shape_, made.element_size_);
  *grid = made;
  return {};
}

Tile Grid::tile(uint64_t i) const {
  Tile tile;
  tile.size = element_size_;
  for (size_t dim = WPR_MAX_DIMS; dim-- > 0;) {
    const uint64_t first = i % count_.extent[dim] * box_.extent[dim];
    i /= count_.extent[dim];
    tile.box.extent[dim] = std::min(box_.extent[dim], shape_.extent[dim] - first);
    tile.offset += first * strides_.bytes[dim];
    tile.size *= tile.box.extent[dim];
  }
  return tile;
}

void Grid::extents(uint64_t* out) const {
  std::fill_n(out, WPR_MAX_DIMS, 0);
  std::copy_n(box_.extent + lead_, n_dims_, out);
}

bool Grid::operator==(const Grid& other) const {
  return n_dims_ == other.n_dims_ &&
         std::equal(shape_.extent, shape_.extent + WPR_MAX_DIMS, other.shape_.extent) &&
         std::equal(box_.extent, box_.extent + WPR_MAX_DIMS, other.box_.extent);
}

Strides packed(const Box& box, uint64_t element_size) {
  Strides strides;
  for (size_t dim = WPR_MAX_DIMS; dim-- > 0;) {
    strides.bytes[dim] = element_size;
    element_size *= box.extent[dim];
  }
  return strides;
}

Status strides_of(const Grid& grid, const Tile& tile, const uint64_t* given, Strides* strides) {
  *strides = packed(tile.box, grid.element_size());
  if (!given || grid.n_dims() == 0) return {};
  const auto n = static_cast<size_t>(grid.n_dims());
  std::copy_n(given, n, strides->bytes + (WPR_MAX_DIMS - n));
  if (given[n - 1] == grid.element_size()) return {};
  return fail(Code::kParameter,
              "the last stride of a tile is %" PRIu64 " bytes; its elements have %" PRIu64
              " and must lie side by side",
              given[n - 1], grid.element_size());
}

bool is_packed(const Box& box, const Strides& strides, uint64_t element_size) {
  const Strides tight = packed(box, element_size);
  for (size_t dim = 0; dim < WPR_MAX_DIMS; ++dim) {
    if (box.extent[dim] > 1 && strides.bytes[dim] != tight.bytes[dim]) return false;
  }
  return true;
}

void copy_box(const Box& box, uint64_t element_size, const std::byte* src, const Strides& from,
              std::byte* dst, const Strides& to) {
  uint64_t row = element_size * box.extent[3];
  uint64_t extent[3] = {box.extent[0], box.extent[1], box.extent[2]};
  for (size_t dim = 3; dim-- > 0;) {  // rows that lie side by side are one
    if (extent[dim] != 1 && (from.bytes[dim] != row || to.bytes[dim] != row)) break;
    row *= extent[dim];
    extent[dim] = 1;
  }
  for (uint64_t i = 0; i < extent[0]; ++i) {
    for (uint64_t j = 0; j < extent[1]; ++j) {
      for (uint64_t k = 0; k < extent[2]; ++k)
        std::memcpy(dst + i * to.bytes[0] + j * to.bytes[1] + k * to.bytes[2],
                    src + i * from.bytes[0] + j * from.bytes[1] + k * from.bytes[2], row);
    }
  }
}

uint64_t tiles_head_size(uint64_t n_tiles) { return kExtents + kEntry * n_tiles; }

void write_tiles_head(const Grid& grid, std::byte* payload) {
  uint64_t extents[WPR_MAX_DIMS];
  grid.extents(extents);
  Writer writer({payload, kExtents});
  for (const uint64_t extent : extents) writer.write(extent);
}

void write_tile_entry(uint64_t tile, uint64_t offset, uint64_t size, std::byte* payload) {
  Writer writer({payload + kExtents + kEntry * tile, kEntry});
  writer.write(offset);
  writer.write(size);
}

Status read_tiles(ConstBytes payload, const Head& head, Grid* grid,
                  std::vector<ConstBytes>* tiles) {
  Reader reader(payload);
  uint64_t extents[WPR_MAX_DIMS];
  if (!reader.read(&extents))
    return fail(Code::kCorrupt, "%zu bytes are no frame in tiles", payload.size());
  if (head.n_dims > 0 && extents[0] == 0) return fail(Code::kCorrupt, "a tile's extent is 0");
  const Status status = Grid::make(head, extents, grid);
  if (!status.ok()) return fail(Code::kCorrupt, "%s", status.text());
  const uint64_t n = grid->n_tiles(), first = tiles_head_size(n);
  if (payload.size() < first)
    return fail(Code::kCorrupt,
                "%" PRIu64 " tiles need a table of %" PRIu64 " bytes; there are %zu", n, first,
                payload.size());
  tiles->clear();
  tiles->reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t offset = 0, size = 0;
    if (!reader.read(&offset) || !reader.read(&size) || offset < first || offset > payload.size() ||
        size > payload.size() - offset)
      return fail(Code::kCorrupt, "tile %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64 " of %zu", i,
                  size, offset, payload.size());
    tiles->push_back(payload.subspan(offset, size));
  }
  return {};
}

}  // namespace wirepress::store
