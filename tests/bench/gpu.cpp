// SPDX-License-Identifier: Apache-2.0
// The emulated GPU: that the benchmark runs and the kernels' bytes are right.
#include "tests/bench/gpu.hpp"

#include "base/clock.hpp"
#include "engines/cuda/emulator.hpp"

namespace {

struct Backend {
  using Device = wirepress::cuda::Emulator;
  static constexpr const char* kEngine = "cuda:emulated";
  static std::string name() { return "emulated"; }
  template <class F>
  static double seconds(Device&, F f) {
    const double begin = wirepress::thread_seconds();
    f();
    return wirepress::thread_seconds() - begin;
  }
  static wirepress::Status copy(Device&, std::byte* to, const std::byte* from, size_t size) {
    std::memcpy(to, from, size);
    return {};
  }
  static void rivals(Device&, const std::vector<std::byte>&, const std::byte*, int) {}
};

}  // namespace

int main(int argc, char** argv) { return wirepress::bench::gpu_main<Backend>(argc, argv); }
