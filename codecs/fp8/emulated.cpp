// SPDX-License-Identifier: Apache-2.0
#include "codecs/fp8/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel fp8_emulated;
const Kernel fp8_emulated =
    cuda::KernelOf<chunks::WarpChunks<Fp8Warps>, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
