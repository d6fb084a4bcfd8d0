// SPDX-License-Identifier: Apache-2.0
// planes on a GPU. The one block that chooses may have what it likes.
// registers: 128
#include "codecs/planes/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel planes_cuda;
const Kernel planes_cuda = cuda::device_kernel<planes::Warps>();

}  // namespace wirepress
