// SPDX-License-Identifier: Apache-2.0
// zeros on a GPU. A warp has 32 lines, 64 bytes in each four of its lanes; blocks of 8 warps tell
// each other how many lines they keep (engines/cuda/places.hpp).
#pragma once

#include <bit>

#include "base/kernel.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::zeros {

constexpr uint32_t kLineSize = 64;
constexpr unsigned kBlockWarps = 8;
constexpr uint32_t kWarpSize = cuda::kLanes * kLineSize;  // bytes of a warp's lines
constexpr uint32_t kBlockSize = kBlockWarps * kWarpSize;

struct Told {
  uint64_t number;
  uint64_t before;             // lines of blocks before this one
  uint32_t kept[kBlockWarps];  // lines, of a warp
};

// Four times 16 bytes of a lane: lane l has bytes 16 l to 16 l + 15 of each 512.
template <class W>
struct Lines {
  typename W::template Four<uint32_t> part[4];
};

// 16 bytes of a lane. Two words and shifts, as an array of four that a byte's number points into
// would live on the stack of some GPUs.
struct LaneBytes {
  uint64_t low = 0, high = 0;
};

static constexpr LaneBytes lane_bytes_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return {a | uint64_t{b} << 32, c | uint64_t{d} << 32};
}

// At any address, `n` of them (more count as 16); the rest is 0.
WPR_ON_DEVICE LaneBytes get_bytes(const std::byte* from, uint32_t n) {
  if (n >= 16 && reinterpret_cast<uintptr_t>(from) % 4 == 0)
    return lane_bytes_of(cuda::get<uint32_t>(from), cuda::get<uint32_t>(from + 4),
                         cuda::get<uint32_t>(from + 8), cuda::get<uint32_t>(from + 12));
  LaneBytes x;
  for (uint32_t i = n < 16 ? n : 16; i-- > 0;) {
    x.high = x.high << 8 | x.low >> 56;
    x.low = x.low << 8 | static_cast<uint8_t>(from[i]);
  }
  return x;
}
WPR_ON_DEVICE void put_bytes(std::byte* to, uint32_t n, LaneBytes x) {
  if (n >= 16 && reinterpret_cast<uintptr_t>(to) % 4 == 0) {
    cuda::put(to, static_cast<uint32_t>(x.low));
    cuda::put(to + 4, static_cast<uint32_t>(x.low >> 32));
    cuda::put(to + 8, static_cast<uint32_t>(x.high));
    cuda::put(to + 12, static_cast<uint32_t>(x.high >> 32));
    return;
  }
  for (uint32_t i = 0; i < 16 && i < n; ++i) {
    to[i] = static_cast<std::byte>(x.low);
    x.low = x.low >> 8 | x.high << 56;
    x.high >>= 8;
  }
}

// Bit i: line i of eight is not all zero; of the four lanes of each.
static constexpr uint32_t lines_of(uint32_t lanes) {
  lanes |= lanes >> 1;
  lanes |= lanes >> 2;
  lanes &= 0x11111111;
  lanes |= lanes >> 3;
  lanes = (lanes & 0x03030303) | (lanes & 0x03030303) >> 6;
  lanes &= 0x000F000F;
  return (lanes | lanes >> 12) & 0xFF;
}

// Bytes of the block's last line that are not there.
static constexpr uint32_t missing(uint64_t raw_size) {
  return static_cast<uint32_t>((kLineSize - raw_size % kLineSize) % kLineSize);
}

// Bytes of the `size` that begin at `at`, to kWarpSize.
static constexpr uint32_t left_of(uint64_t size, uint64_t at) {
  return at >= size ? 0 : size - at < kWarpSize ? static_cast<uint32_t>(size - at) : kWarpSize;
}

// Where the kept lines of a warp stand among those of all blocks.
struct Kept {
  uint32_t before = 0, all = 0;
  template <class W>
  WPR_ON_DEVICE Kept(W& w, const uint32_t* of_warp) {
    for (unsigned i = 0; i < kBlockWarps; ++i) {
      before += i < w.warp() ? of_warp[i] : 0;
      all += of_warp[i];
    }
  }
};

}  // namespace wirepress::zeros
