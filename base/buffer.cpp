// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace wirepress {

Buffer::Buffer(size_t size, size_t align) : size_(size) {
  constexpr size_t kHugePage = 2 << 20;
  const bool large = size >= 2 * kHugePage;
  if (large) align = std::max(align, kHugePage);
  data_.reset(std::aligned_alloc(align, (size + align) / align * align));
  if (!data_) throw std::bad_alloc();
  if (large) (void)::madvise(data_.get(), size, MADV_HUGEPAGE);  // only a wish
}

std::byte* Buffer::reserve(size_t size, size_t keep) {
  if (size <= size_ && data_) return data();
  // 64: a cache line, and the widest vector. A quarter more, so that slow growth settles.
  const size_t wanted = (size + size / 4 + 64 + 63) / 64 * 64;
  void* grown = std::aligned_alloc(64, wanted);
  if (!grown) return nullptr;
  if (keep) std::memcpy(grown, data(), keep);
  data_.reset(grown);
  size_ = wanted;
  return data();
}

void Buffer::shrink(size_t size) {
  void* smaller = std::realloc(data_.get(), size);
  if (!smaller) return;  // it stays as large as it was
  (void)data_.release();
  data_.reset(smaller);
  size_ = size;
}

}  // namespace wirepress
