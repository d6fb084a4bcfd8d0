// SPDX-License-Identifier: Apache-2.0
// terngrad on a GPU.
#include "codecs/terngrad/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel terngrad_cuda;
const Kernel terngrad_cuda = cuda::device_kernel<chunks::WarpChunks<terngrad::Warps>>();

}  // namespace wirepress
