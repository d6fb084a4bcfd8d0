// SPDX-License-Identifier: Apache-2.0
#include "codecs/zeros/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel zeros_emulated;
const Kernel zeros_emulated =
    cuda::KernelOf<zeros::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
