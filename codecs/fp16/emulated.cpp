// SPDX-License-Identifier: Apache-2.0
#include "codecs/fp16/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel fp16_emulated;
const Kernel fp16_emulated = cuda::KernelOf<chunks::WarpChunks<Fp16Warps>, cuda::Emulator>::kernel(
    "emulated", always_usable);

}  // namespace wirepress
