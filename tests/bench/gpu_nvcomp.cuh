// SPDX-License-Identifier: Apache-2.0
// Rows of nvCOMP's codecs, for comparison, where its headers are (option WPR_NVCOMP) and its library
// is found when the benchmark runs: chunks of 64 KiB through its batched C interface, on the same
// data. What is expanded is compared with the data: Bitcomp with a loss keeps its bound.
#pragma once

#if __has_include(<nvcomp/lz4.h>)
#include <dlfcn.h>

#include <cmath>

#include <nvcomp/ans.h>
#include <nvcomp/bitcomp.h>
#include <nvcomp/lz4.h>
#include <nvcomp/snappy.h>
#include <nvcomp/zstd.h>

#include "engines/cuda/device.cuh"
#include "tests/bench/gpu.hpp"

namespace wirepress::bench {

class Nvcomp {
 public:
  using Device = cuda::Stream;

  Nvcomp(Device& device, const std::vector<std::byte>& raw, const std::byte* there, int rounds)
      : device_(device), raw_(raw), there_(there), rounds_(rounds),
        chunks_((raw.size() + kChunk - 1) / kChunk) {
    for (const char* name : {"libnvcomp.so.6", "libnvcomp.so"})
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) std::fprintf(stderr, "gpu_bench: no nvCOMP: %s\n", dlerror());
  }
  bool found() const { return library_ != nullptr; }

  // A codec: its functions by the names of their kinds, and its settings. `most`: the largest error
  // of a value; 0: none is allowed.
#define WPR_NVCOMP_FUNCTION(NAME) named<decltype(&NAME)>(#NAME)
#define WPR_NVCOMP_ROW(CODEC, NAME, BACKEND, COMPRESS, EXPAND, MOST)               \
  row<BACKEND>(NAME, COMPRESS, EXPAND, MOST,                                       \
               WPR_NVCOMP_FUNCTION(nvcompBatched##CODEC##CompressGetTempSize),     \
               WPR_NVCOMP_FUNCTION(nvcompBatched##CODEC##CompressGetMaxOutputChunkSize), \
               WPR_NVCOMP_FUNCTION(nvcompBatched##CODEC##CompressAsync),           \
               WPR_NVCOMP_FUNCTION(nvcompBatched##CODEC##DecompressGetTempSize),   \
               WPR_NVCOMP_FUNCTION(nvcompBatched##CODEC##DecompressAsync))

  template <class B>
  void rows() {
    WPR_NVCOMP_ROW(LZ4, "nvcomp lz4", B, nvcompBatchedLZ4CompressDefaultOpts,
                   nvcompBatchedLZ4DecompressDefaultOpts, 0);
    WPR_NVCOMP_ROW(Snappy, "nvcomp snappy", B, nvcompBatchedSnappyCompressDefaultOpts,
                   nvcompBatchedSnappyDecompressDefaultOpts, 0);
    WPR_NVCOMP_ROW(Zstd, "nvcomp zstd", B, nvcompBatchedZstdCompressDefaultOpts,
                   nvcompBatchedZstdDecompressDefaultOpts, 0);
    WPR_NVCOMP_ROW(ANS, "nvcomp ans", B, nvcompBatchedANSCompressDefaultOpts,
                   nvcompBatchedANSDecompressDefaultOpts, 0);
    nvcompBatchedBitcompCompressOpts_t lossless = nvcompBatchedBitcompCompressDefaultOpts;
    lossless.data_type = NVCOMP_TYPE_FLOAT32;
    WPR_NVCOMP_ROW(Bitcomp, "nvcomp bitcomp", B, lossless,
                   nvcompBatchedBitcompDecompressDefaultOpts, 0);
    // The largest values are some 2^-9; a step of 2^-16 leaves them six bits, as bx:m=5 has.
    nvcompBatchedBitcompCompressOpts_t lossy = lossless;
    lossy.mode = BITCOMP_LOSSY_FP_TO_SIGNED;
    lossy.delta = 0x1p-16;
    WPR_NVCOMP_ROW(Bitcomp, "nvcomp bitcomp 2^-16", B, lossy,
                   nvcompBatchedBitcompDecompressDefaultOpts, 0x1p-17);
  }

 private:
  static constexpr size_t kChunk = 64 << 10;

  template <class Function>
  Function named(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  static bool fine(nvcompStatus_t status, const char* name, const char* what) {
    if (status == nvcompSuccess) return true;
    std::fprintf(stderr, "gpu_bench: %s: %s: status %d\n", name, what, static_cast<int>(status));
    return false;
  }

  // An array in memory of the device.
  template <class T>
  struct Array {
    cuda::Stream::Memory memory;
    T* at = nullptr;
    Status set(Device& device, const std::vector<T>& values) {
      WPR_TRY(memory.prepare(values.size() * sizeof(T)));
      at = reinterpret_cast<T*>(memory.get());
      WPR_TRY(device.upload(memory.get(), std::as_bytes(std::span(values))));
      return device.finish();
    }
  };

  template <class B, class CompressOpts, class ExpandOpts, class CTemp, class CMost, class C,
            class DTemp, class D>
  void row(const char* name, CompressOpts compress_opts, ExpandOpts expand_opts, double most,
           CTemp* compress_temp, CMost* compress_room, C* compress, DTemp* expand_temp, D* expand) {
    if (!compress_temp || !compress_room || !compress || !expand_temp || !expand)
      return static_cast<void>(
          std::fprintf(stderr, "gpu_bench: %s: this nvCOMP has no such functions\n", name));
    size_t room = 0, temp = 0, temp_back = 0;
    const size_t size = raw_.size();
    if (!fine(compress_room(kChunk, compress_opts, &room), name, "room") ||
        !fine(compress_temp(chunks_, kChunk, compress_opts, &temp, size, device_.stream()), name,
              "memory") ||
        !fine(expand_temp(chunks_, kChunk, expand_opts, &temp_back, size, device_.stream()), name,
              "memory"))
      return;
    room = (room + 15) / 16 * 16;
    cuda::Stream::Memory codes, back, scratch;
    require(codes.prepare(room * chunks_));
    require(back.prepare(kChunk * chunks_));
    require(scratch.prepare(std::max(temp, temp_back) + 16));
    std::vector<const void*> from;
    std::vector<void*> code, to;
    std::vector<size_t> sizes;
    for (size_t i = 0; i < chunks_; ++i) {
      from.push_back(there_ + i * kChunk);
      code.push_back(codes.get() + i * room);
      to.push_back(back.get() + i * kChunk);
      sizes.push_back(std::min(kChunk, size - i * kChunk));
    }
    Array<const void*> from_there;
    Array<void*> code_there, to_there;
    Array<size_t> sizes_there, written_there, expanded_there;
    Array<nvcompStatus_t> status_there;
    require(from_there.set(device_, from));
    require(code_there.set(device_, code));
    require(to_there.set(device_, to));
    require(sizes_there.set(device_, sizes));
    require(written_there.set(device_, sizes));
    require(expanded_there.set(device_, sizes));
    require(status_there.set(device_, std::vector<nvcompStatus_t>(chunks_, nvcompSuccess)));
    bool good = true;
    const auto run_compress = [&] {
      good &= compress(from_there.at, sizes_there.at, kChunk, chunks_, scratch.get(), temp,
                       code_there.at, written_there.at, compress_opts, status_there.at,
                       device_.stream()) == nvcompSuccess;
    };
    const auto run_expand = [&] {
      good &= expand(code_there.at, written_there.at, sizes_there.at, expanded_there.at, chunks_,
                     scratch.get(), temp_back, to_there.at, expand_opts, status_there.at,
                     device_.stream()) == nvcompSuccess;
    };
    const double there = least(rounds_, [&] { return B::seconds(device_, run_compress); });
    const double again = least(rounds_, [&] { return B::seconds(device_, run_expand); });
    std::vector<size_t> written(chunks_);
    std::vector<nvcompStatus_t> status(chunks_);
    std::vector<std::byte> expanded(size);
    require(device_.download(std::as_writable_bytes(std::span(written)), written_there.memory.get()));
    require(device_.download(std::as_writable_bytes(std::span(status)), status_there.memory.get()));
    require(device_.download(expanded, back.get()));
    require(device_.finish());
    size_t all = 0;
    for (size_t i = 0; i < chunks_; ++i) {
      all += written[i];
      good &= status[i] == nvcompSuccess;
    }
    if (!good || !holds(expanded, most))
      return static_cast<void>(
          std::fprintf(stderr, "gpu_bench: %s: failed, or expanded to other data\n", name));
    std::printf(
        "{\"kind\": \"rival\", \"recipe\": \"%s\", \"dtype\": \"float32\", \"ratio\": %.4f, "
        "\"encode_s\": %.9g, \"decode_s\": %.9g}\n",
        name, static_cast<double>(size) / static_cast<double>(all), there, again);
    std::fflush(stdout);
  }

  bool holds(const std::vector<std::byte>& expanded, double most) const {
    if (most == 0) return expanded == raw_;
    for (size_t i = 0; i + 4 <= raw_.size(); i += 4) {
      float x, y;
      std::memcpy(&x, raw_.data() + i, 4);
      std::memcpy(&y, expanded.data() + i, 4);
      if (!(std::fabs(x - y) <= most)) return false;
    }
    return true;
  }

  Device& device_;
  const std::vector<std::byte>& raw_;
  const std::byte* there_;
  int rounds_;
  size_t chunks_;
  void* library_ = nullptr;
};

}  // namespace wirepress::bench
#endif
