// SPDX-License-Identifier: Apache-2.0
// bf16 on a GPU.
#include "codecs/bf16/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel bf16_cuda;
const Kernel bf16_cuda = cuda::device_kernel<chunks::WarpChunks<Bf16Warps>>();

}  // namespace wirepress
