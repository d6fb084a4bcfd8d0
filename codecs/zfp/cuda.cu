// SPDX-License-Identifier: Apache-2.0
// zfp on a GPU. A lane keeps a cell of 64 values, and where it looks at what comes back of them, half
// as much again (152 registers; of all blocks of a frame 228, which costs a third of the warps).
// registers: 232
#include "codecs/zfp/warp.hpp"
#include "engines/cuda/device.cuh"

namespace wirepress {

extern const Kernel zfp_cuda;
const Kernel zfp_cuda = zfp::OnDevice<cuda::Stream>::kernel("device", cuda::has_device);

}  // namespace wirepress
