// SPDX-License-Identifier: Apache-2.0
#include "codecs/shuffle/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel shuffle_emulated;
const Kernel shuffle_emulated =
    cuda::KernelOf<shuffle::Warps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
