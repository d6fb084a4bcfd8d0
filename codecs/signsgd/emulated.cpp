// SPDX-License-Identifier: Apache-2.0
#include "codecs/signsgd/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel signsgd_emulated;
const Kernel signsgd_emulated =
    cuda::KernelOf<chunks::WarpChunks<signsgd::Warps>, cuda::Emulator>::kernel("emulated",
                                                                               always_usable);

}  // namespace wirepress
