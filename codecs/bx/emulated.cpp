// SPDX-License-Identifier: Apache-2.0
#include "codecs/bx/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel bx_emulated;
const Kernel bx_emulated =
    cuda::KernelOf<bx::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
