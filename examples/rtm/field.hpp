// SPDX-License-Identifier: Apache-2.0
// The grid, and arrays over it: rows along x, zeros around what is computed, huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rtm {

constexpr int kRadius = 4;         // of the stencil
constexpr ptrdiff_t kVector = 16;  // floats of the widest vector

// Extents of the image, in cells; z is the depth.
struct Size {
  int x = 0, y = 0, z = 0;
  size_t n() const {
    return static_cast<size_t>(x) * static_cast<size_t>(y) * static_cast<size_t>(z);
  }
};

// The image lies inside of `sponge` cells on each side, which take up the wave.
struct Grid {
  Size image;
  int sponge = 0;
  Size all() const { return {image.x + 2 * sponge, image.y + 2 * sponge, image.z + 2 * sponge}; }
};

class Field {
 public:
  Field() = default;
  explicit Field(const Grid& grid);

  // Of the cell, which may lie kRadius outside.
  float* at(int x, int y, int z) const { return origin_ + z * plane_ + y * row_ + x; }
  // The same in the coordinates of the image.
  float* image_at(int x, int y, int z) const { return at(x + sponge_, y + sponge_, z + sponge_); }
  ptrdiff_t row() const { return row_; }      // floats from row to row
  ptrdiff_t plane() const { return plane_; }  // and from plane to plane
  void clear();
  void swap(Field& other);
  size_t size() const { return size_; }  // bytes

 private:
  struct Unmap {
    size_t size;
    void operator()(float* data) const;
  };
  std::unique_ptr<float, Unmap> data_;
  float* origin_ = nullptr;
  ptrdiff_t row_ = 0, plane_ = 0;
  int sponge_ = 0;
  size_t size_ = 0;
};

// Memory of zeros in huge pages, where the system has them.
float* map_floats(size_t n);
void unmap_floats(float* data, size_t n);

}  // namespace rtm
