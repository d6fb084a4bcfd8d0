// SPDX-License-Identifier: Apache-2.0
// Whether this machine has a GPU. The CUDA runtime is linked in and looks for the driver when it is
// first asked: a program that loads this library needs none.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>

#include "engines/cuda/device.hpp"

namespace wirepress::cuda {
namespace {

// What the first call found; later changes of a machine are not seen.
struct Found {
  char name[320] = "";
  char reason[320] = "";

  Found() noexcept {
    int count = 0, device = 0, driver = 0;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        driver == 0) {
      std::snprintf(reason, sizeof(reason), "no device: no NVIDIA driver is loaded");
    } else if (error != cudaSuccess) {
      std::snprintf(reason, sizeof(reason), "no device: %s", cudaGetErrorString(error));
    } else if (properties.major < 8) {
      std::snprintf(reason, sizeof(reason), "no device: %s is sm_%d%d, the kernels need sm_80",
                    properties.name, properties.major, properties.minor);
    } else {
      std::snprintf(name, sizeof(name), "cuda:sm_%d%d, %s", properties.major, properties.minor,
                    properties.name);
    }
    cudaGetLastError();  // it is not the next one's
  }
};

std::atomic<bool> streams{false};

const Found& found() noexcept {
  static const Found once;
  return once;
}

}  // namespace

bool has_device() noexcept { return found().reason[0] == '\0'; }
const char* why_no_device() noexcept { return has_device() ? nullptr : found().reason; }
const char* device_name() noexcept { return found().name; }
bool has_stream() noexcept { return streams; }
void note_stream() noexcept { streams = true; }

}  // namespace wirepress::cuda
