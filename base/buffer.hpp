// SPDX-License-Identifier: Apache-2.0
// Memory for bytes, not filled with zeros first.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace wirepress {

class Buffer {
 public:
  Buffer() = default;
  // Exactly `size` bytes, in huge pages from 4 MiB on. `align` is a power of two. Throws
  // std::bad_alloc.
  explicit Buffer(size_t size, size_t align = 64);

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  size_t size() const { return size_; }

  // At least `size` bytes; the first `keep` bytes survive. It only grows, by a quarter more than
  // asked, so that after warm-up nothing is allocated. nullptr: no memory, and nothing changed.
  std::byte* reserve(size_t size, size_t keep = 0);
  // Gives the memory behind the first `size` bytes back; their alignment may be lost.
  void shrink(size_t size);

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
  size_t size_ = 0;
};

}  // namespace wirepress
