// SPDX-License-Identifier: Apache-2.0
// lz4 on a GPU.
#include "codecs/lz4/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel lz4_cuda;
const Kernel lz4_cuda = cuda::device_kernel<lz4::Warps>();

}  // namespace wirepress
