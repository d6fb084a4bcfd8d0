// SPDX-License-Identifier: Apache-2.0
// Writes at a file's end: room reserved ahead, and past the page cache, where asked.
#pragma once

#include "store/codec.hpp"
#include "store/file.hpp"

namespace wirepress::store {

class Appender {
 public:
  explicit Appender(File& file) : file_(file), direct_(file.calls()) {}

  // Bytes of the buffer that direct writes of frames of this size need.
  static size_t buffer_size(uint64_t frame_size);

  // end: of what the file holds. buffer_size 0, or a file system that cannot: it writes as usual.
  Status open(uint64_t end, size_t buffer_size, uint64_t reserve);
  // After a failure the file holds what it did up to `offset`, the end; behind it lies anything.
  Status append(uint64_t offset, ConstBytes first, ConstBytes second);
  // Gives back what lies behind the end: a block's padding, and what was reserved.
  Status cut(uint64_t end);
  bool is_direct() const { return direct_.is_open(); }

 private:
  Status append_direct(uint64_t offset, ConstBytes first, ConstBytes second);
  Status fill(ConstBytes bytes);
  Status write_blocks();
  Status read_last_block(uint64_t end);

  File& file_;
  File direct_;
  Buffer chunk_;  // begins with what the file holds of its last block
  size_t filled_ = 0;
  uint64_t at_ = 0;  // where the chunk goes
  uint64_t reserve_ = 0, reserved_ = 0;
  bool touched_ = false;
};

}  // namespace wirepress::store
