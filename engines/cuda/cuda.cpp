// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs.
#include "base/kernel.hpp"
#include "engines/cuda/device.hpp"

namespace wirepress {

extern const Engine cuda_engine;
const Engine cuda_engine = {
    .name = "cuda",
    .sentence = "NVIDIA GPUs; cuda:emulated is the same kernels on a core, for tests",
    .unavailable = cuda::why_no_device,
    .state = [] { return std::string(cuda::has_stream() ? cuda::device_name() : ""); },
};

}  // namespace wirepress
