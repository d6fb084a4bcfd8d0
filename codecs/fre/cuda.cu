// SPDX-License-Identifier: Apache-2.0
// fre on a GPU.
// registers: 80
#include "codecs/fre/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel fre_cuda;
const Kernel fre_cuda = cuda::device_kernel<FreWarps>();

}  // namespace wirepress
