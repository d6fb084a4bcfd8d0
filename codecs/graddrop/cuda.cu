// SPDX-License-Identifier: Apache-2.0
// graddrop on a GPU.
#include "codecs/common/sparse/warps.hpp"
#include "codecs/graddrop/graddrop.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel graddrop_cuda;
const Kernel graddrop_cuda = cuda::device_kernel<sparse::WarpBlocks<graddrop::Rules>>();

}  // namespace wirepress
