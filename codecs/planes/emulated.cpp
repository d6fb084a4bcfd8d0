// SPDX-License-Identifier: Apache-2.0
#include "codecs/planes/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel planes_emulated;
const Kernel planes_emulated =
    cuda::KernelOf<planes::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
