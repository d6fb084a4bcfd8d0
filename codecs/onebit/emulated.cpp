// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel onebit_emulated;
const Kernel onebit_emulated =
    cuda::KernelOf<chunks::WarpChunks<onebit::Warps>, cuda::Emulator>::kernel("emulated",
                                                                              always_usable);

}  // namespace wirepress
