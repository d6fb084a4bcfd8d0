// SPDX-License-Identifier: Apache-2.0
#include "codecs/snappy/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel snappy_emulated;
const Kernel snappy_emulated =
    cuda::KernelOf<snappy::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
