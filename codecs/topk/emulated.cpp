// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/warps.hpp"
#include "codecs/topk/topk.hpp"
#include "engines/cuda/emulated_stream.hpp"

namespace wirepress {

extern const Kernel topk_emulated;
const Kernel topk_emulated =
    cuda::KernelOf<sparse::WarpBlocks<topk::Rules>, cuda::Emulator>::kernel("emulated",
                                                                            always_usable);

}  // namespace wirepress
