// SPDX-License-Identifier: Apache-2.0
// qsgd on a GPU.
#include "codecs/qsgd/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel qsgd_cuda;
const Kernel qsgd_cuda = cuda::device_kernel<chunks::WarpChunks<qsgd::Warps>>();

}  // namespace wirepress
