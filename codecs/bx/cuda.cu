// SPDX-License-Identifier: Apache-2.0
// bx on a GPU.
// registers: 128
#include "codecs/bx/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel bx_cuda;
const Kernel bx_cuda = cuda::device_kernel<bx::Warps>();

}  // namespace wirepress
