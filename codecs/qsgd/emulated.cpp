// SPDX-License-Identifier: Apache-2.0
#include "codecs/qsgd/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel qsgd_emulated;
const Kernel qsgd_emulated =
    cuda::KernelOf<chunks::WarpChunks<qsgd::Warps>, cuda::Emulator>::kernel("emulated",
                                                                            always_usable);

}  // namespace wirepress
