// SPDX-License-Identifier: Apache-2.0
// onebit on a GPU.
#include "codecs/onebit/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel onebit_cuda;
const Kernel onebit_cuda = cuda::device_kernel<chunks::WarpChunks<onebit::Warps>>();

}  // namespace wirepress
