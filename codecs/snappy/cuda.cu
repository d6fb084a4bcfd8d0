// SPDX-License-Identifier: Apache-2.0
// snappy on a GPU.
#include "codecs/snappy/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel snappy_cuda;
const Kernel snappy_cuda = cuda::device_kernel<snappy::Warps>();

}  // namespace wirepress
