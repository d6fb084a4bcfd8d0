// SPDX-License-Identifier: Apache-2.0
// topk on a GPU.
#include "codecs/common/sparse/warps.hpp"
#include "codecs/topk/topk.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel topk_cuda;
const Kernel topk_cuda = cuda::device_kernel<sparse::WarpBlocks<topk::Rules>>();

}  // namespace wirepress
