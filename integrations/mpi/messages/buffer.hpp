// SPDX-License-Identifier: Apache-2.0
// Memory from a pool, and spares with which a collective goes on where memory has run out.
#pragma once

#include <cstddef>
#include <utility>

#include "job/job.hpp"

namespace wirepress {

inline constexpr size_t kInFlight = 16;  // chunks of a collective on their way at a time, each way

// 64-byte aligned; data() is nullptr where there was no memory.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) { reserve(size); }
  Buffer(Buffer&& other) noexcept : data_(other.data_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.capacity_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() { release(); }
  // At least `size` bytes. A buffer that grows loses its content. `needed`: may take a spare, which
  // holds a chunk.
  bool reserve(size_t size, bool needed = false);
  void release();
  Byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  Byte* data_ = nullptr;
  size_t capacity_ = 0;
};

// Sets aside spares for one more collective at a time; they cost address space until they are used.
// False: there is no memory for them.
bool prepare_spares();
void drop_spares();  // of a communicator that ends

// A thread's own buffers do not keep the memory of one huge message.
inline void trim(Buffer* buffer) {
  if (buffer->capacity() > (size_t{256} << 20)) buffer->release();
}

}  // namespace wirepress
