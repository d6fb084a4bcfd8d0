// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/warp.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel tbq_emulated;
const Kernel tbq_emulated =
    cuda::KernelOf<tbq::WarpBlocks, cuda::Emulator>::kernel("emulated", always_usable);

}  // namespace wirepress
