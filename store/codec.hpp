// SPDX-License-Identifier: Apache-2.0
// One thread's way between a frame's raw bytes and a record's payload, with its buffer.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "store/file.hpp"

namespace wirepress::store {

// Memory that is not filled with zeros first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size, size_t align = 64)
      : data_(std::aligned_alloc(align, (size + align) / align * align)), size_(size) {
    if (!data_) throw std::bad_alloc();
  }
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  size_t size() const { return size_; }
  // Gives the memory behind its first bytes back.
  void shrink(size_t size) {
    void* smaller = std::realloc(data_.get(), size);
    if (!smaller) return;  // it stays as large as it was
    (void)data_.release();
    data_.reset(smaller);
    size_ = size;
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
  size_t size_ = 0;
};

struct Times {
  double compress = 0, write = 0, read = 0, expand = 0;
};

double now();  // seconds, monotonic

class Codec {
 public:
  Codec() = default;
  ~Codec() { wpr_free(context_); }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // recipe NULL: the option's value. Fails where it does not take the dtype.
  Status open(const Head& head, const char* recipe);
  size_t bound() const { return bound_; }  // of a payload

  // The payload lies in this object until its next call.
  Status compress(const std::byte* raw, ConstBytes* payload);
  // payload may be anything; raw has the head's raw_size bytes.
  Status expand(ConstBytes payload, std::byte* raw);
  // Reads the record of a step at `offset` and writes its frame to raw.
  Status load(const File& file, uint64_t step, uint64_t offset, uint64_t file_size, std::byte* raw,
              Times* times);

 private:
  std::byte* staging(size_t size);

  wpr_ctx* context_ = nullptr;
  Head head_;
  size_t bound_ = 0;
  Buffer staging_;
};

}  // namespace wirepress::store
