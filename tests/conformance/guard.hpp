// SPDX-License-Identifier: Apache-2.0
// Buffers between unreadable pages: touching one byte outside is a crash, in any build.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::conformance {

enum class Flush { kStart, kEnd };  // which side of the view lies against the unreadable page

class Guarded {
 public:
  explicit Guarded(size_t capacity) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_ = (capacity / page + 1) * page;
    whole_ = size_ + 2 * page;
    void* at = mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED ||
        mprotect(static_cast<char*>(at) + page, size_, PROT_READ | PROT_WRITE)) {
      std::perror("guarded buffer");
      std::abort();
    }
    map_ = static_cast<std::byte*>(at);
    begin_ = map_ + page;
  }
  ~Guarded() { munmap(map_, whole_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Bytes view(size_t size, Flush flush) const {
    if (size > size_) std::abort();
    return {flush == Flush::kStart ? begin_ : begin_ + size_ - size, size};
  }
  Bytes copy(ConstBytes from, Flush flush) const {
    const Bytes to = view(from.size(), flush);
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return to;
  }
  size_t capacity() const { return size_; }

 private:
  std::byte* map_;
  std::byte* begin_;
  size_t size_;
  size_t whole_;
};

}  // namespace wirepress::conformance
