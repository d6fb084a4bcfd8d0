// SPDX-License-Identifier: Apache-2.0
// shuffle on a GPU.
#include "codecs/shuffle/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel shuffle_cuda;
const Kernel shuffle_cuda = cuda::device_kernel<shuffle::Warps>();

}  // namespace wirepress
