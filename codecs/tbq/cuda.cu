// SPDX-License-Identifier: Apache-2.0
// tbq on a GPU.
#include "codecs/tbq/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel tbq_cuda;
const Kernel tbq_cuda = cuda::device_kernel<tbq::WarpBlocks>();

}  // namespace wirepress
