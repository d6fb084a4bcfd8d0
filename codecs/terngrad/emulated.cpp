// SPDX-License-Identifier: Apache-2.0
#include "codecs/terngrad/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel terngrad_emulated;
const Kernel terngrad_emulated =
    cuda::KernelOf<chunks::WarpChunks<terngrad::Warps>, cuda::Emulator>::kernel("emulated",
                                                                                always_usable);

}  // namespace wirepress
