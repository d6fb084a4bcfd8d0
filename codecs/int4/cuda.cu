// SPDX-License-Identifier: Apache-2.0
// int4 on a GPU.
#include "codecs/int4/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel int4_cuda;
const Kernel int4_cuda = cuda::device_kernel<chunks::WarpChunks<Int4Warps>>();

}  // namespace wirepress
