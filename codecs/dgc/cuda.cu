// SPDX-License-Identifier: Apache-2.0
// dgc on a GPU.
#include "codecs/common/sparse/warps.hpp"
#include "codecs/dgc/dgc.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel dgc_cuda;
const Kernel dgc_cuda = cuda::device_kernel<sparse::WarpBlocks<dgc::Rules>>();

}  // namespace wirepress
