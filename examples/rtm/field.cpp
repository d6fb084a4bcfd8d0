// SPDX-License-Identifier: Apache-2.0
#include "field.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

namespace rtm {
namespace {

ptrdiff_t round_up(ptrdiff_t n) { return (n + kVector - 1) / kVector * kVector; }

}  // namespace

float* map_floats(size_t n) {
  void* data = ::mmap(nullptr, 4 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  (void)::madvise(data, 4 * n, MADV_HUGEPAGE);
  return static_cast<float*>(data);
}

void unmap_floats(float* data, size_t n) { ::munmap(data, 4 * n); }

void Field::Unmap::operator()(float* data) const { unmap_floats(data, size / 4); }

Field::Field(const Grid& grid) : sponge_(grid.sponge) {
  const Size all = grid.all();
  // Zeros for one vector before each row and, since whole vectors are computed, behind it. Rows and
  // planes that are a multiple of 4 KiB apart would share the sets of a cache.
  row_ = kVector + round_up(all.x + kRadius);
  if (row_ % 1024 == 0) row_ += kVector;
  plane_ = row_ * (all.y + 2 * kRadius);
  if (plane_ % 1024 == 0) plane_ += kVector;
  const auto n = static_cast<size_t>(plane_ * (all.z + 2 * kRadius) + kVector);
  size_ = 4 * n;
  data_ = std::unique_ptr<float, Unmap>(map_floats(n), Unmap{size_});
  origin_ = data_.get() + kRadius * plane_ + kRadius * row_ + kVector;
}

void Field::clear() { std::memset(data_.get(), 0, size_); }

void Field::swap(Field& other) {
  std::swap(data_, other.data_);
  std::swap(origin_, other.origin_);
}

}  // namespace rtm
