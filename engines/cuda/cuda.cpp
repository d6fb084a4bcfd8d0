// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs.
#include "engines/cuda/device.hpp"
#include "engines/cuda/emulated_memory.hpp"

namespace wirepress {
namespace {

constexpr const DeviceMemory* kMemories[] = {&cuda::device_memory, &cuda::emulated_memory};

}  // namespace

extern const Engine cuda_engine;
const Engine cuda_engine = {
    .name = "cuda",
    .sentence = "NVIDIA GPUs; cuda:emulated is the same kernels on a core, for tests",
    .unavailable = cuda::why_no_device,
    .state = [] { return std::string(cuda::has_stream() ? cuda::device_name() : ""); },
    .work = cuda::device_work,
    .memories = kMemories};

}  // namespace wirepress
