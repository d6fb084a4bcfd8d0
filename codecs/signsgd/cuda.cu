// SPDX-License-Identifier: Apache-2.0
// signsgd on a GPU.
#include "codecs/signsgd/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel signsgd_cuda;
const Kernel signsgd_cuda = cuda::device_kernel<chunks::WarpChunks<signsgd::Warps>>();

}  // namespace wirepress
