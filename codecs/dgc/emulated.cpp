// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/warps.hpp"
#include "codecs/dgc/dgc.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel dgc_emulated;
const Kernel dgc_emulated = cuda::KernelOf<sparse::WarpBlocks<dgc::Rules>, cuda::Emulator>::kernel(
    "emulated", always_usable);

}  // namespace wirepress
