// SPDX-License-Identifier: Apache-2.0
#include "codecs/fre/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel fre_emulated;
const Kernel fre_emulated =
    cuda::KernelOf<FreWarps, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
