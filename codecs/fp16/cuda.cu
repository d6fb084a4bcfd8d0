// SPDX-License-Identifier: Apache-2.0
// fp16 on a GPU.
#include "codecs/fp16/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel fp16_cuda;
const Kernel fp16_cuda = cuda::device_kernel<chunks::WarpChunks<Fp16Warps>>();

}  // namespace wirepress
