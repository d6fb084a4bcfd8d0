// SPDX-License-Identifier: Apache-2.0
// zeros on a GPU.
#include "codecs/zeros/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel zeros_cuda;
const Kernel zeros_cuda = cuda::device_kernel<zeros::Warps>();

}  // namespace wirepress
