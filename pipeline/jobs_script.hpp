// SPDX-License-Identifier: Apache-2.0
// What tests of jobs (wirepress.h) share: memory of the emulator's devices, frames, and a stream
// that goes on a piece of work at a time.
#pragma once

#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "engines/cuda/emulated_stream.hpp"
#include "pipeline/device_script.hpp"

namespace wirepress::job_tests {

using cuda::EmulatedStream;
using device_tests::Context;
using device_tests::Data;
using device_tests::gradient;

inline constexpr const char* kDevices = "cuda:emulated";

// Memory of an emulated device.
class There : public device_tests::There {
 public:
  explicit There(size_t size, int device = 0, size_t skip = 0)
      : device_tests::There(kDevices, size, device, skip) {}
  explicit There(const Data& data, int device = 0, size_t skip = 0)
      : device_tests::There(kDevices, data, device, skip) {}
};

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

// Of auto, the goal that no speed decides: its frames are compared.
inline std::vector<std::string> recipes() {
  std::vector<std::string> all = {"bx:m=5",          "bx:m=0",         "fre:m=5,ways=4",
                                  "fre:m=5,ways=0",  "zfp:rate=8",     "zeros",
                                  "planes",          "onebit:block=7", "shuffle:4+zstd:1",
                                  "auto:goal=ratio", "bx:m=23",        "topk:ratio=0.01"};
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
