// SPDX-License-Identifier: Apache-2.0
// planes on a GPU.
#include "codecs/planes/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel planes_cuda;
const Kernel planes_cuda = cuda::device_kernel<planes::Warps>();

}  // namespace wirepress
