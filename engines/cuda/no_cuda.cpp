// SPDX-License-Identifier: Apache-2.0
// In the place of cuda.cpp where the library was built without a CUDA compiler.
#include "base/kernel.hpp"

namespace wirepress {

extern const Engine cuda_engine;
const Engine cuda_engine = {"cuda",
                            "NVIDIA GPUs; cuda:emulated is the same kernels on a core, for tests",
                            [] { return "no device: this build has no CUDA compiler's code"; }};

}  // namespace wirepress
