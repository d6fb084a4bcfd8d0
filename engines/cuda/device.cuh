// SPDX-License-Identifier: Apache-2.0
// A GPU for kernels (warp.hpp): launches on a stream, and memory. Compiled by nvcc only.
#pragma once

#include <cuda_runtime.h>

#include "base/kernel.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/device_warp.cuh"
#include "engines/cuda/kernel.hpp"

namespace wirepress::cuda {

// Shared memory of a block: the kernel's own, then a stage for each warp.
template <class K>
constexpr size_t shared_size() {
  return (shared_by<K>() + 15) / 16 * 16 + K::kWarps * DeviceWarp::kStage;
}

template <class K>
__device__ void run_block(const K& kernel) {
  extern __shared__ uint4 shared[];
  std::byte* const bytes = reinterpret_cast<std::byte*>(shared);
  DeviceWarp w(bytes,
               bytes + (shared_by<K>() + 15) / 16 * 16 + threadIdx.x / kLanes * DeviceWarp::kStage);
  kernel(w);
}

template <class K>
__global__ void __launch_bounds__(K::kWarps* kLanes) run(const __grid_constant__ K kernel) {
  run_block(kernel);
}

// ptxas spills registers where it hopes that more blocks hide it. A kernel with kLeastBlocks says
// how many a multiprocessor shall have, and takes the registers of the others.
template <class K>
__global__ void __launch_bounds__(K::kWarps* kLanes, K::kLeastBlocks)
    run_wide(const __grid_constant__ K kernel) {
  run_block(kernel);
}

template <class K>
constexpr auto entry_of() {
  if constexpr (requires { K::kLeastBlocks; }) {
    return run_wide<K>;
  } else {
    return run<K>;
  }
}

// The error is reported once, here: it is not the next launch's, nor the program's.
inline Status checked(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  return fail(Code::kDevice, "cuda: %s: %s", what, cudaGetErrorString(error));
}

class StreamQueue;

class Stream {
 public:
  using Queue = StreamQueue;

  Stream() = default;
  // The caller's: work goes there, and it is not closed.
  explicit Stream(cudaStream_t stream, int device = -1) : stream_(stream), device_(device) {}
  ~Stream() {
    if (own_) cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The calling thread's device; -1: it cannot be told.
  static int current() noexcept {
    int device = -1;
    if (cudaGetDevice(&device) == cudaSuccess) return device;
    cudaGetLastError();
    return -1;
  }

  // On a device, or where `device` is -1 on the thread's current one, whatever that is later:
  // entries are between a Bound.
  Status open(int device = -1) noexcept {
    if (device < 0) WPR_TRY(checked(cudaGetDevice(&device), "a device"));
    device_ = device;
    const Bound bound(*this);
    WPR_TRY(checked(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
    own_ = true;
    note_stream();
    return {};
  }

  // Where kernels find `size` bytes of the caller's; nullptr: in no memory of this device.
  std::byte* reach(const void* at, size_t) const noexcept {
    return device_memory.device_of(at) == device_ ? static_cast<std::byte*>(const_cast<void*>(at))
                                                  : nullptr;
  }

  // While it lives, a device, or the stream's, is the thread's current one; below 0: as it was. A
  // thread of the library keeps it: to go back to the first one would make a context there.
  class Bound {
   public:
    explicit Bound(int device) noexcept {
      if (device < 0 || cudaGetDevice(&before_) != cudaSuccess) return;
      changed_ = before_ != device && cudaSetDevice(device) == cudaSuccess;
    }
    explicit Bound(const Stream& stream) noexcept : Bound(stream.device_) {}
    ~Bound() {
      if (changed_ && !is_own_thread) cudaSetDevice(before_);
    }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

   private:
    int before_ = 0;
    bool changed_ = false;
  };

  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    constexpr size_t kShared = shared_size<K>();
    constexpr auto entry = entry_of<K>();
    if constexpr (kShared > 48 << 10)
      WPR_TRY(checked(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(kShared)),
                      "shared memory"));
    if (blocks > kMostBlocks)
      return fail(Code::kUnsupported, "cuda: %llu blocks of a launch, %llu are the most",
                  static_cast<unsigned long long>(blocks),
                  static_cast<unsigned long long>(kMostBlocks));
    cudaGetLastError();  // what a call of the program left is not this launch's
    entry<<<static_cast<unsigned>(blocks), K::kWarps * kLanes, kShared, stream_>>>(kernel);
    return checked(cudaGetLastError(), "a launch");
  }

  class Memory {
   public:
    std::byte* get() const { return data_; }
    Status prepare(size_t size) noexcept {
      if (size <= room_) return {};
      release();
      const size_t room = size + size / 4;
      WPR_TRY(checked(cudaMalloc(&data_, room), "memory"));
      room_ = room;
      return {};
    }
    Memory() = default;
    ~Memory() { release(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

   private:
    void release() noexcept {
      if (data_ != nullptr) cudaFree(data_);
      data_ = nullptr;
      room_ = 0;
    }
    std::byte* data_ = nullptr;
    size_t room_ = 0;
  };

  // The caller's bytes may lie on a device, too.
  Status upload(std::byte* to, ConstBytes from) noexcept {
    if (from.empty()) return {};
    return checked(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyDefault, stream_),
                   "upload");
  }
  Status download(Bytes to, const std::byte* from) noexcept {
    if (to.empty()) return {};
    return checked(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDefault, stream_),
                   "download");
  }
  Status clear(std::byte* at, size_t size) noexcept {
    return checked(cudaMemsetAsync(at, 0, size, stream_), "memory");
  }
  cudaStream_t stream() const { return stream_; }
  Status finish() noexcept { return checked(cudaStreamSynchronize(stream_), "a kernel"); }

 private:
  static constexpr uint64_t kMostBlocks = 0x7FFFFFFF;
  cudaStream_t stream_ = nullptr;
  int device_ = -1;  // of open(); a caller's stream has the caller's
  bool own_ = false;
};

// A caller's stream of a device, and memory that is known to be reached (OnStream, kernel.hpp).
class StreamQueue : public Stream {
 public:
  StreamQueue(int device, void* stream) : Stream(static_cast<cudaStream_t>(stream), device) {}
  static std::byte* reach(const std::byte* at, size_t) noexcept {
    return const_cast<std::byte*>(at);
  }
};

// The kernel of a codec's class C (kernel.hpp).
template <class C>
constexpr Kernel device_kernel() {
  return KernelOf<C, Stream>::kernel("device", has_device);
}

}  // namespace wirepress::cuda
