// SPDX-License-Identifier: Apache-2.0
#include "codecs/int4/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel int4_emulated;
const Kernel int4_emulated = cuda::KernelOf<chunks::WarpChunks<Int4Warps>, cuda::Emulator>::kernel(
    "emulated", always_usable);

}  // namespace wirepress
