// SPDX-License-Identifier: Apache-2.0
// bx on a GPU. A block of 8 warps has a chunk, a lane a group of 16 values in its registers: what
// is asked of a group is asked of one lane. The code of a chunk is made in shared memory, while the
// block learns where it begins.
#pragma once

#include "codecs/bx/portable.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::bx {

constexpr unsigned kWarpsOfChunk = kChunkGroups / cuda::kLanes;
constexpr unsigned kWarpValues = cuda::kLanes * kGroup;

// What the warps of a block tell each other, in shared memory behind the chunk's code.
struct Told {
  uint64_t number;                  // of the chunk
  uint64_t begin;                   // of its code
  uint32_t present[kWarpsOfChunk];  // groups, of a warp
  uint32_t planes[kWarpsOfChunk];
};

template <typename F>
constexpr size_t code_room() {
  return (F::kMost + 15) / 16 * 16;
}

// Sums over the warps of a block.
struct Sums {
  uint32_t before = 0, all = 0;
  template <class W>
  WPR_ON_DEVICE Sums(W& w, const uint32_t* of_warp) {
    for (unsigned i = 0; i < kWarpsOfChunk; ++i) {
      before += i < w.warp() ? of_warp[i] : 0;
      all += of_warp[i];
    }
  }
};

}  // namespace wirepress::bx
