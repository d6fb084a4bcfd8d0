// SPDX-License-Identifier: Apache-2.0
// A warp of the GPU (warp.hpp): each thread is a lane. What needs more than the thread's own
// registers is here, and nowhere else: shuffles, votes, 128-bit loads through shared memory, words
// that blocks wait for. Compiled by nvcc only.
#pragma once

#include <cuda_runtime.h>

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

class DeviceWarp {
 public:
  template <typename T>
  using Of = T;
  template <typename T>
  struct Four {
    T v[4];
    __device__ T& operator[](unsigned i) { return v[i]; }
    __device__ const T& operator[](unsigned i) const { return v[i]; }
  };
  template <typename T>
  struct Sixteen {
    T v[16];
    __device__ T& operator[](unsigned i) { return v[i]; }
    __device__ const T& operator[](unsigned i) const { return v[i]; }
  };
  static constexpr unsigned kAll = 0xFFFFFFFF;
  static constexpr size_t kStage = 512;  // bytes of shared memory that rows() takes for each warp

  // stage: kStage bytes of this warp alone, aligned to 16.
  __device__ DeviceWarp(std::byte* shared, std::byte* stage) : shared_(shared), stage_(stage) {}

  __device__ uint64_t block() const { return blockIdx.x; }
  __device__ uint64_t blocks() const { return gridDim.x; }
  __device__ unsigned warp() const { return threadIdx.x / kLanes; }
  __device__ std::byte* shared() const { return shared_; }
  static __device__ uint32_t lane() { return threadIdx.x % kLanes; }

  template <typename T>
  static WPR_ON_DEVICE T all(T value) {
    return value;
  }
  template <class F, typename... T>
  static WPR_ON_DEVICE auto map(F f, const T&... x) {
    return f(x...);
  }
  template <class F, typename... T>
  static WPR_ON_DEVICE void each(F f, const T&... x) {
    f(x...);
  }

  static WPR_ON_DEVICE uint32_t ballot(bool x) { return __ballot_sync(kAll, x); }
  template <typename T>
  static WPR_ON_DEVICE T down(T x, unsigned n) {
    return __shfl_down_sync(kAll, x, n);
  }
  template <typename T>
  static WPR_ON_DEVICE T up(T x, unsigned n) {
    return __shfl_up_sync(kAll, x, n);
  }
  template <typename T>
  static WPR_ON_DEVICE T from(T x, unsigned i) {
    return __shfl_sync(kAll, x, i);
  }
  static WPR_ON_DEVICE uint32_t most(uint32_t x) { return __reduce_max_sync(kAll, x); }
  static WPR_ON_DEVICE uint32_t either(uint32_t x) { return __reduce_or_sync(kAll, x); }
  static WPR_ON_DEVICE uint32_t sum(uint32_t x) { return __reduce_add_sync(kAll, x); }

  WPR_ON_DEVICE Four<uint32_t> rows(const std::byte* from, uint32_t n) {
    Four<uint32_t> x;
    if (n >= 4 * kLanes) {
      __syncwarp();  // the last ones have been read
      reinterpret_cast<uint4*>(stage_)[lane()] = reinterpret_cast<const uint4*>(from)[lane()];
      __syncwarp();
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        x[k] = reinterpret_cast<const uint32_t*>(stage_)[kLanes * k + lane()];
    } else {
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned i = kLanes * k + lane();
        x[k] = i < n ? get<uint32_t>(from + 4 * i) : 0;
      }
    }
    return x;
  }
  // Four stores of 128 bytes: whole lines, whatever their width.
  static WPR_ON_DEVICE void put_rows(std::byte* to, uint32_t n, const Four<uint32_t>& x) {
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned i = kLanes * k + lane();
      if (i < n) put(to + 4 * i, x[k]);
    }
  }
  static WPR_ON_DEVICE Four<uint32_t> quads(const std::byte* from, uint32_t n) {
    Four<uint32_t> x;
    if (n >= 4 * kLanes) {
      const uint4 word = reinterpret_cast<const uint4*>(from)[lane()];
      x[0] = word.x, x[1] = word.y, x[2] = word.z, x[3] = word.w;
    } else {
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned i = 4 * lane() + k;
        x[k] = i < n ? get<uint32_t>(from + 4 * i) : 0;
      }
    }
    return x;
  }
  static WPR_ON_DEVICE void put_quads(std::byte* to, uint32_t n, const Four<uint32_t>& x) {
    if (n >= 4 * kLanes) {
      reinterpret_cast<uint4*>(to)[lane()] = make_uint4(x[0], x[1], x[2], x[3]);
      return;
    }
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned i = 4 * lane() + k;
      if (i < n) put(to + 4 * i, x[k]);
    }
  }
  // A lane's sixteen words are 32 to 128 bytes, loaded in turns of 16: the lines come whole into
  // the first-level cache, where the next turns find them.
  template <typename T>
  static WPR_ON_DEVICE Sixteen<T> groups(const std::byte* from, uint32_t n) {
    Sixteen<T> x;
    constexpr unsigned kEach = 16 / sizeof(T);
    from += 16 * sizeof(T) * lane();
    if (n >= 16 * kLanes) {
      WPR_UNROLL
      for (unsigned k = 0; k < 16; k += kEach) {
        const uint4 words = *reinterpret_cast<const uint4*>(from + k * sizeof(T));
        memcpy(&x.v[k], &words, sizeof(words));
      }
    } else {
      WPR_UNROLL
      for (unsigned k = 0; k < 16; ++k)
        x[k] = 16 * lane() + k < n ? get<T>(from + k * sizeof(T)) : T{0};
    }
    return x;
  }

  template <typename T>
  static WPR_ON_DEVICE void put_groups(std::byte* to, uint32_t n, const Sixteen<T>& x) {
    constexpr unsigned kEach = 16 / sizeof(T);
    to += 16 * sizeof(T) * lane();
    if (n >= 16 * kLanes) {
      WPR_UNROLL
      for (unsigned k = 0; k < 16; k += kEach) {
        uint4 words;
        memcpy(&words, &x.v[k], sizeof(words));
        *reinterpret_cast<uint4*>(to + k * sizeof(T)) = words;
      }
      return;
    }
    WPR_UNROLL
    for (unsigned k = 0; k < 16; ++k)
      if (16 * lane() + k < n) put(to + k * sizeof(T), x[k]);
  }
  template <class F, typename T, typename... X>
  static WPR_ON_DEVICE auto of_groups(F f, const Sixteen<T>& q, const X&... x) {
    return f(q.v, x...);
  }
  template <typename T, class F, typename... X>
  static WPR_ON_DEVICE Sixteen<T> make_groups(F f, const X&... x) {
    Sixteen<T> q = {};
    f(q.v, x...);
    return q;
  }

  static WPR_ON_DEVICE void settle() { __syncwarp(); }
  static WPR_ON_DEVICE void sync() { __syncthreads(); }
  static WPR_ON_DEVICE void wait() { __nanosleep(20); }
  static WPR_ON_DEVICE uint64_t take_number(uint64_t* number) {
    unsigned long long x = 0;
    if (lane() == 0) x = atomicAdd(reinterpret_cast<unsigned long long*>(number), 1ull);
    return from(x, 0);
  }
  // Of the whole warp, one word; what any lane wrote before comes first.
  static WPR_ON_DEVICE void publish(uint64_t* word, uint64_t value) {
    __threadfence();
    __syncwarp();
    if (lane() == 0)
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  static WPR_ON_DEVICE uint64_t published(const uint64_t* word) {
    uint64_t x = 0;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(word) : "memory");
    return x;
  }
  static WPR_ON_DEVICE void set_bits(std::byte* word, uint32_t bits) {
    atomicOr(reinterpret_cast<unsigned*>(word), bits);
  }
  static WPR_ON_DEVICE uint32_t peek(const std::byte* word) {
    uint32_t x = 0;
    asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(x) : "l"(word) : "memory");
    return x;
  }
  static WPR_ON_DEVICE void add_to(std::byte* word, uint32_t n) {
    atomicAdd(reinterpret_cast<unsigned*>(word), n);
  }
  static WPR_ON_DEVICE void at_most(uint64_t* word, uint64_t value) {
    if (lane() == 0)
      atomicMin(reinterpret_cast<unsigned long long*>(word),
                static_cast<unsigned long long>(value));
  }

 private:
  std::byte* shared_;
  std::byte* stage_;
};

}  // namespace wirepress::cuda
