// SPDX-License-Identifier: Apache-2.0
// This machine's GPU.
// registers: 160
#include "engines/cuda/device.cuh"
#include "tests/bench/gpu.hpp"
#include "tests/bench/gpu_nvcomp.cuh"

namespace {

using wirepress::bench::require;
using wirepress::cuda::checked;

struct Backend {
  using Device = wirepress::cuda::Stream;
  static constexpr const char* kEngine = "cuda";
  static std::string name() { return wirepress::cuda::device_name(); }
  template <class F>
  static double seconds(Device& device, F f) {
    cudaEvent_t begin, end;
    require(checked(cudaEventCreate(&begin), "an event"));
    require(checked(cudaEventCreate(&end), "an event"));
    require(checked(cudaEventRecord(begin, device.stream()), "an event"));
    f();
    require(checked(cudaEventRecord(end, device.stream()), "an event"));
    require(device.finish());
    float milliseconds = 0;
    require(checked(cudaEventElapsedTime(&milliseconds, begin, end), "an event"));
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return milliseconds / 1e3;
  }
  static wirepress::Status copy(Device& device, std::byte* to, const std::byte* from, size_t size) {
    return checked(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, device.stream()),
                   "a copy");
  }
  static void rivals([[maybe_unused]] Device& device,
                     [[maybe_unused]] const std::vector<std::byte>& raw,
                     [[maybe_unused]] const std::byte* there, [[maybe_unused]] int rounds) {
#if __has_include(<nvcomp/lz4.h>)
    wirepress::bench::Nvcomp nvcomp(device, raw, there, rounds);
    if (nvcomp.found()) nvcomp.rows<Backend>();
#endif
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (const char* const reason = wirepress::cuda::why_no_device())
    return std::fprintf(stderr, "gpu_bench: %s\n", reason), 77;
  return wirepress::bench::gpu_main<Backend>(argc, argv);
}
