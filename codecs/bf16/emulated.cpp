// SPDX-License-Identifier: Apache-2.0
#include "codecs/bf16/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel bf16_emulated;
const Kernel bf16_emulated = cuda::KernelOf<chunks::WarpChunks<Bf16Warps>, cuda::Emulator>::kernel(
    "emulated", always_usable);

}  // namespace wirepress
