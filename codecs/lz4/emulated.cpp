// SPDX-License-Identifier: Apache-2.0
#include "codecs/lz4/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel lz4_emulated;
const Kernel lz4_emulated =
    cuda::KernelOf<lz4::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
