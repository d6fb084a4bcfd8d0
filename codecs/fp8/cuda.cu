// SPDX-License-Identifier: Apache-2.0
// fp8 on a GPU.
#include "codecs/fp8/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel fp8_cuda;
const Kernel fp8_cuda = cuda::device_kernel<chunks::WarpChunks<Fp8Warps>>();

}  // namespace wirepress
