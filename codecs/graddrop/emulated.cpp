// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/warps.hpp"
#include "codecs/graddrop/graddrop.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel graddrop_emulated;
const Kernel graddrop_emulated =
    cuda::KernelOf<sparse::WarpBlocks<graddrop::Rules>, cuda::Emulator>::kernel("emulated",
                                                                                always_usable);

}  // namespace wirepress
