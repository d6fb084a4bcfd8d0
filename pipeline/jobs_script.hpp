// SPDX-License-Identifier: Apache-2.0
// What tests of jobs (wirepress.h) share: a context, memory of the emulator's devices, data, and a
// stream that goes on a piece of work at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "engines/cuda/emulated_stream.hpp"
#include "wirepress/wirepress.h"

namespace wirepress::job_tests {

using cuda::EmulatedStream;
using Data = std::vector<uint8_t>;

inline constexpr const char* kDevices = "cuda:emulated";

class Context {
 public:
  explicit Context(const std::string& recipe, const char* block_size = "4KiB") {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    status = wpr_set(ctx_, "recipe", recipe.c_str());
    set("block_size", block_size);
    set("threads", "1");
  }
  ~Context() { wpr_free(ctx_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  operator wpr_ctx*() { return ctx_; }  // NOLINT: stands for it
  void set(const char* key, const char* value) {
    EXPECT_EQ(wpr_set(ctx_, key, value), WPR_OK) << wpr_error(ctx_);
  }
  std::string error() { return wpr_error(ctx_); }
  wpr_status status;  // of the recipe

 private:
  wpr_ctx* ctx_ = nullptr;
};

class There {
 public:
  explicit There(size_t size, int device = 0, size_t skip = 0) : size_(size), skip_(skip) {
    EXPECT_EQ(wpr_device_alloc(ctx_, kDevices, device, size + skip, &memory_), WPR_OK);
  }
  explicit There(const Data& data, int device = 0, size_t skip = 0)
      : There(data.size(), device, skip) {
    EXPECT_EQ(wpr_copy(ctx_, get(), data.data(), size_), WPR_OK) << ctx_.error();
  }
  ~There() { EXPECT_EQ(wpr_device_free(ctx_, memory_), WPR_OK); }
  There(const There&) = delete;
  There& operator=(const There&) = delete;
  void* get() const { return static_cast<uint8_t*>(memory_) + skip_; }
  Data data() const {
    Data data(size_);
    EXPECT_EQ(wpr_copy(ctx_, data.data(), get(), size_), WPR_OK) << ctx_.error();
    return data;
  }

 private:
  mutable Context ctx_{"zeros"};
  void* memory_ = nullptr;
  size_t size_, skip_;
};

inline Data gradient(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Data data(n);
  for (size_t i = 0; i + 4 <= n; i += 4) {
    const float value = random() % 3 == 0 ? 0.0f : normal(random) * 1e-3f;
    std::memcpy(&data[i], &value, 4);
  }
  for (size_t i = n / 4 * 4; i < n; ++i) data[i] = static_cast<uint8_t>(random());
  return data;
}

// The frame that the call that waits makes of data on the cores.
inline Data frame_of(wpr_ctx* ctx, const Data& raw, wpr_dtype dtype) {
  const uint64_t shape = raw.size() / wpr_dtype_size(dtype);
  Data frame(wpr_bound(ctx, raw.size()));
  size_t written = 0;
  EXPECT_EQ(wpr_compress_array(ctx, raw.data(), dtype, WPR_NO_SHAPE, &shape, frame.data(),
                               frame.size(), &written),
            WPR_OK)
      << wpr_error(ctx);
  frame.resize(written);
  return frame;
}

inline Data values_of(wpr_ctx* ctx, const Data& frame, size_t n) {
  Data values(n);
  size_t written = 0;
  EXPECT_EQ(wpr_decompress(ctx, frame.data(), frame.size(), values.data(), n, &written), WPR_OK);
  return values;
}

inline wpr_status begin(wpr_ctx* ctx, const void* src, size_t n, wpr_dtype dtype, void* dst,
                        size_t cap, wpr_job** job) {
  const uint64_t shape = n / wpr_dtype_size(dtype);
  return wpr_compress_async(ctx, src, dtype, WPR_NO_SHAPE, &shape, dst, cap, job);
}

inline std::vector<std::string> recipes() {
  std::vector<std::string> all = {"bx:m=5", "bx:m=0",  "fre:m=5,ways=4", "zfp:rate=8",
                                  "zeros",  "planes",  "onebit:block=7", "shuffle:4+zstd:1",
                                  "auto",   "bx:m=23", "topk:ratio=0.01"};
  for (const Entry& entry : registry()) all.emplace_back(entry.codec->name);
  return all;
}

// The stream goes on, a piece of work at a time, and the job is asked between. false: it failed.
inline bool finish(wpr_ctx* ctx, wpr_job* job, EmulatedStream* stream, size_t* written) {
  int done = 0;
  for (;;) {
    const wpr_status status = wpr_poll(ctx, job, &done, written);
    EXPECT_TRUE(done || status == WPR_OK);
    if (done) return status == WPR_OK;
    if (!stream->step()) ADD_FAILURE() << "the stream is empty and the job is not done";
  }
}

}  // namespace wirepress::job_tests
