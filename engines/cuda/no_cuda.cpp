// SPDX-License-Identifier: Apache-2.0
// In the place of cuda.cpp where the library was built without a CUDA compiler.
#include "engines/cuda/emulated_memory.hpp"

namespace wirepress {
namespace {

constexpr const DeviceMemory* kMemories[] = {&cuda::emulated_memory};

}  // namespace

extern const Engine cuda_engine;
const Engine cuda_engine = {
    .name = "cuda",
    .sentence = "NVIDIA GPUs; cuda:emulated is the same kernels on a core, for tests",
    .unavailable = [] { return "no device: this build has no CUDA compiler's code"; },
    .work = cuda::device_work,
    .memories = kMemories};

}  // namespace wirepress
