// SPDX-License-Identifier: Apache-2.0
// Bits of a lane, put at any bit of words that were cleared: neighbours share the words at the
// ends.
#pragma once

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

template <class W>
class LaneBits {
 public:
  WPR_ON_DEVICE LaneBits(std::byte* words, uint64_t at)
      : next_(words + at / 32 * 4), filled_(static_cast<uint32_t>(at % 32)) {}
  // size <= 64.
  WPR_ON_DEVICE void put(uint64_t bits, uint32_t size) {
    put32(static_cast<uint32_t>(bits), size < 32 ? size : 32);
    if (size > 32) put32(static_cast<uint32_t>(bits >> 32), size - 32);
  }
  WPR_ON_DEVICE void finish() {
    if (filled_ > 0) W::set_bits(next_, static_cast<uint32_t>(buffer_));
  }

 private:
  WPR_ON_DEVICE void put32(uint32_t bits, uint32_t size) {
    buffer_ |= uint64_t{bits} << filled_;
    filled_ += size;
    if (filled_ < 32) return;
    W::set_bits(next_, static_cast<uint32_t>(buffer_));
    next_ += 4;
    buffer_ >>= 32;
    filled_ -= 32;
  }
  std::byte* next_;
  uint64_t buffer_ = 0;
  uint32_t filled_;
};

}  // namespace wirepress::cuda
