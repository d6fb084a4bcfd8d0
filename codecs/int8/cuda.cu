// SPDX-License-Identifier: Apache-2.0
// int8 on a GPU.
#include "codecs/int8/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel int8_cuda;
const Kernel int8_cuda = cuda::device_kernel<chunks::WarpChunks<Int8Warps>>();

}  // namespace wirepress
