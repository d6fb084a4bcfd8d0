// SPDX-License-Identifier: Apache-2.0
#include "codecs/int8/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel int8_emulated;
const Kernel int8_emulated = cuda::KernelOf<chunks::WarpChunks<Int8Warps>, cuda::Emulator>::kernel(
    "emulated", always_usable);

}  // namespace wirepress
