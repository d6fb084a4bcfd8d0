// SPDX-License-Identifier: Apache-2.0
// The C door on memory of a device: frames and values of every recipe are those of the cores, what
// a device cannot do the cores do and count, and nothing touches such memory but kernels. The
// device is the emulator's, whose memory ends the program that reads it; with
// WPR_TEST_DEVICE=cuda it is this machine's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "pipeline/device_script.hpp"
#include "pipeline/work_script.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using device_tests::Context;
using device_tests::Data;

const char* device_engine() {
  const char* given = std::getenv("WPR_TEST_DEVICE");
  return given != nullptr ? given : "cuda:emulated";
}
bool is_emulated() { return std::string_view(device_engine()) == "cuda:emulated"; }

class There : public device_tests::There {
 public:
  explicit There(size_t size, int device = 0, size_t skip = 0)
      : device_tests::There(device_engine(), size, device, skip) {}
  explicit There(const Data& data, int device = 0, size_t skip = 0)
      : device_tests::There(device_engine(), data, device, skip) {}
};

enum class Kind { kGradient, kNoise, kZeros };

// n bytes, of floats as far as they go.
Data make(Kind kind, size_t n, unsigned seed = 1) {
  if (kind == Kind::kGradient) return device_tests::gradient(n, seed);
  std::mt19937 random(seed);
  Data data(n);
  if (kind == Kind::kNoise)
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

struct Made {
  wpr_status status;
  Data frame;
};

Made compress(wpr_ctx* ctx, const void* src, size_t n, wpr_dtype dtype, size_t cap) {
  const uint64_t shape = n / wpr_dtype_size(dtype);
  Data frame(cap);
  size_t written = 0;
  const wpr_status status =
      wpr_compress_array(ctx, src, dtype, WPR_NO_SHAPE, &shape, frame.data(), cap, &written);
  frame.resize(status == WPR_OK ? written : 0);
  return {status, frame};
}

// Every codec of this build, and recipes of several.
std::vector<std::string> recipes() {
  std::vector<std::string> all = {
      "bx:m=5",         "bx:m=0",           "fre:m=5",           "fre:m=5,ways=4",
      "fre:m=5,ways=0", "zfp:rate=8",       "zfp:accuracy=1e-3", "onebit:block=7",
      "terngrad+zstd",  "shuffle:4+zstd:1", "qsgd:bits=2+lz4",   "zeros+lz4",
      "auto:goal=ratio"};
  for (const Entry& entry : registry()) all.emplace_back(entry.codec->name);
  return all;
}

constexpr wpr_dtype kTypes[] = {WPR_BYTES,    WPR_INT8,    WPR_INT32,  WPR_FLOAT16,
                                WPR_BFLOAT16, WPR_FLOAT32, WPR_FLOAT64};

// Frames from a device, and values on it, against those of the cores.
void exchange(const std::string& recipe, wpr_dtype dtype, Kind kind, size_t n, const char* threads,
              int device, size_t skip) {
  SCOPED_TRACE(recipe + " " + wpr_dtype_name(dtype) + " " + std::to_string(n) + " skip " +
               std::to_string(skip));
  Context ctx(recipe);
  ctx.set("threads", threads);
  if (ctx.status != WPR_OK) return;  // its codec has a library that is not here
  n = n / wpr_dtype_size(dtype) * wpr_dtype_size(dtype);
  const Data raw = make(kind, n);
  const There there(raw, device, skip);
  const size_t cap = wpr_bound(ctx, n);
  const Made expected = compress(ctx, raw.data(), n, dtype, cap);
  const std::string sentence = ctx.error();
  const Made made = compress(ctx, there.get(), n, dtype, cap);
  ASSERT_EQ(made.status, expected.status) << ctx.error();
  if (made.status != WPR_OK) {
    EXPECT_EQ(ctx.error(), sentence);
    return;
  }
  EXPECT_EQ(made.frame, expected.frame);
  // Frame and values, here and there.
  Data values(n);
  size_t written = 0;
  ASSERT_EQ(wpr_decompress(ctx, made.frame.data(), made.frame.size(), values.data(), n, &written),
            WPR_OK)
      << ctx.error();
  const There frame(made.frame, device);
  There back(n, device, skip);
  for (const void* from :
       {static_cast<const void*>(made.frame.data()), static_cast<const void*>(frame.get())}) {
    written = 0;
    ASSERT_EQ(wpr_decompress(ctx, from, made.frame.size(), back.get(), n, &written), WPR_OK)
        << ctx.error();
    EXPECT_EQ(written, n);
    EXPECT_EQ(back.data(), values);
    Data other(n);
    ASSERT_EQ(wpr_decompress(ctx, from, made.frame.size(), other.data(), n, &written), WPR_OK);
    EXPECT_EQ(other, values);
  }
  There room(cap, device);
  const uint64_t shape = n / wpr_dtype_size(dtype);
  ASSERT_EQ(
      wpr_compress_array(ctx, there.get(), dtype, WPR_NO_SHAPE, &shape, room.get(), cap, &written),
      WPR_OK)
      << ctx.error();
  Data all = room.data();
  all.resize(written);
  EXPECT_EQ(all, expected.frame);
}

TEST(Device, EveryRecipeAndTypeMakesTheFramesOfTheCores) {
  for (const std::string& recipe : recipes())
    for (const wpr_dtype dtype : kTypes)
      for (const size_t n : {size_t{0}, size_t{8}, size_t{4088}, size_t{20000}})
        exchange(recipe, dtype, Kind::kGradient, n, "1", 0, 0);
}

TEST(Device, OtherDataDevicesThreadsAndPlacesDoTheSame) {
  const int last = is_emulated() ? 1 : 0;
  for (const std::string& recipe : recipes()) {
    for (const Kind kind : {Kind::kNoise, Kind::kZeros})
      exchange(recipe, WPR_FLOAT32, kind, 40000, "3", last, 0);
    exchange(recipe, WPR_FLOAT32, Kind::kGradient, 70000, "3", last, 4);
    exchange(recipe, WPR_FLOAT32, Kind::kGradient, 9999, "2", 0, 1);
  }
}

TEST(Device, AThreadsDeviceFollowsTheData) {
  if (!is_emulated()) GTEST_SKIP() << "one device";
  Context ctx("onebit");
  ctx.set("threads", "3");
  const Data raw = make(Kind::kGradient, 50000);
  for (const int device : {0, 1, 0, 1}) {  // one context: states of both are kept apart
    const There there(raw, device);
    const Work work;
    const Made made = compress(ctx, there.get(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 50000));
    EXPECT_EQ(made.status, WPR_OK) << ctx.error();
    EXPECT_EQ(work.device(), raw.size());
    EXPECT_EQ(work.cores(), 0u);
  }
}

TEST(Device, ArraysOfRowsKeepTheirShape) {
  const Data raw = make(Kind::kGradient, 4 * 30 * 50 * 20);
  const uint64_t shape[] = {30, 50, 20};
  for (const char* recipe : {"zfp:rate=8", "zfp:accuracy=1e-4", "bx"}) {
    Context ctx(recipe);
    const There there(raw);
    Data a(wpr_bound(ctx, raw.size())), b(a.size());
    size_t n_a = 0, n_b = 0;
    ASSERT_EQ(wpr_compress_array(ctx, raw.data(), WPR_FLOAT32, 3, shape, a.data(), a.size(), &n_a),
              WPR_OK);
    ASSERT_EQ(wpr_compress_array(ctx, there.get(), WPR_FLOAT32, 3, shape, b.data(), b.size(), &n_b),
              WPR_OK)
        << ctx.error();
    a.resize(n_a);
    b.resize(n_b);
    EXPECT_EQ(a, b) << recipe;
    There back(raw.size());
    Data values(raw.size());
    ASSERT_EQ(wpr_decompress(ctx, a.data(), n_a, values.data(), raw.size(), &n_b), WPR_OK);
    ASSERT_EQ(wpr_decompress(ctx, a.data(), n_a, back.get(), raw.size(), &n_b), WPR_OK);
    EXPECT_EQ(back.data(), values) << recipe;
  }
}

TEST(Device, ErrorFeedbackAndSumsAreThoseOfTheCores) {
  for (const std::string& recipe : recipes()) {
    for (const size_t n : {size_t{1}, size_t{1000}, size_t{9001}}) {
      SCOPED_TRACE(recipe + " " + std::to_string(n));
      Context ctx(recipe);
      ctx.set("threads", "2");
      if (ctx.status != WPR_OK) continue;
      Data rest(4 * n), sum = make(Kind::kGradient, 4 * n, 9);
      There rest_there(rest), sum_there(sum);
      for (unsigned step = 0; step < 3; ++step) {
        const Data raw = make(Kind::kGradient, 4 * n, step);
        const There there(raw);
        Data a(wpr_bound(ctx, 4 * n)), b(a.size());
        size_t n_a = 0, n_b = 0;
        const wpr_status expected = wpr_compress_feedback(
            ctx, reinterpret_cast<const float*>(raw.data()), reinterpret_cast<float*>(rest.data()),
            n, a.data(), a.size(), &n_a);
        const std::string sentence = ctx.error();
        ASSERT_EQ(wpr_compress_feedback(ctx, there.floats(), rest_there.floats(), n, b.data(),
                                        b.size(), &n_b),
                  expected)
            << ctx.error();
        if (expected != WPR_OK) {
          EXPECT_EQ(ctx.error(), sentence);
          break;
        }
        a.resize(n_a);
        b.resize(n_b);
        EXPECT_EQ(a, b);
        EXPECT_EQ(rest_there.data(), rest);
        EXPECT_EQ(there.data(), raw);
        size_t n_values = 0;
        ASSERT_EQ(wpr_decompress_add(ctx, a.data(), n_a, reinterpret_cast<float*>(sum.data()), n,
                                     &n_values),
                  WPR_OK);
        ASSERT_EQ(wpr_decompress_add(ctx, b.data(), n_b, sum_there.floats(), n, &n_values), WPR_OK)
            << ctx.error();
        EXPECT_EQ(n_values, n);
        EXPECT_EQ(sum_there.data(), sum);
      }
    }
  }
}

// A codec without a kernel leaves them to the cores.
TEST(Device, GradientsOfHalvesAreCodedThere) {
  constexpr size_t kN = 9001;
  for (const wpr_dtype dtype : {WPR_BFLOAT16, WPR_FLOAT16}) {
    for (const char* recipe : {"onebit", "zstd:1", "topk:ratio=0.1"}) {
      SCOPED_TRACE(recipe);
      Context ctx(recipe);
      ctx.set("threads", "2");
      Data words(2 * kN), sum(2 * kN), rest(4 * kN);
      for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint8_t>(i % 2 ? 0x3C : i);
      sum = words;
      const There there(words);
      There rest_there(rest), sum_there(sum);
      Data a(wpr_bound(ctx, 4 * kN)), b(a.size());
      size_t n_a = 0, n_b = 0, n_values = 0;
      ASSERT_EQ(wpr_compress_feedback_typed(ctx, words.data(), dtype,
                                            reinterpret_cast<float*>(rest.data()), kN, a.data(),
                                            a.size(), &n_a),
                WPR_OK);
      const Work work;
      ASSERT_EQ(wpr_compress_feedback_typed(ctx, there.get(), dtype, rest_there.floats(), kN,
                                            b.data(), b.size(), &n_b),
                WPR_OK)
          << ctx.error();
      const bool there_too = std::string_view(recipe) != "zstd:1";
      EXPECT_EQ(work.cores(), there_too ? 0 : 4 * kN) << work.reason();
      EXPECT_EQ(work.device(), there_too ? 4 * kN : 0);
      a.resize(n_a);
      b.resize(n_b);
      EXPECT_EQ(a, b);
      EXPECT_EQ(rest_there.data(), rest);
      ASSERT_EQ(wpr_decompress_add_typed(ctx, a.data(), n_a, sum.data(), dtype, kN, &n_values),
                WPR_OK);
      ASSERT_EQ(wpr_decompress_add_typed(ctx, b.data(), n_b, sum_there.get(), dtype, kN, &n_values),
                WPR_OK)
          << ctx.error();
      EXPECT_EQ(n_values, kN);
      EXPECT_EQ(sum_there.data(), sum);
      EXPECT_EQ(work.cores(), there_too ? 0 : 8 * kN) << work.reason();
    }
  }
}

TEST(Device, RangesAndHeadersAreReadThere) {
  Context ctx("bx:m=5");
  const Data raw = make(Kind::kGradient, 30000);
  const Made made = compress(ctx, raw.data(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 30000));
  ASSERT_EQ(made.status, WPR_OK);
  const There frame(made.frame);
  wpr_info info, expected;
  ASSERT_EQ(wpr_inspect(ctx, frame.get(), frame.size(), &info), WPR_OK) << ctx.error();
  ASSERT_EQ(wpr_inspect(ctx, made.frame.data(), frame.size(), &expected), WPR_OK);
  EXPECT_EQ(info.raw_size, expected.raw_size);
  EXPECT_STREQ(info.recipe, expected.recipe);
  uint64_t size = 0;
  ASSERT_EQ(wpr_raw_size(frame.get(), frame.size(), &size), WPR_OK);
  EXPECT_EQ(size, raw.size());
  Data part(5000);
  There part_there(part.size());
  ASSERT_EQ(wpr_decompress_range(ctx, made.frame.data(), frame.size(), 3001, 5000, part.data()),
            WPR_OK);
  const Work work;
  ASSERT_EQ(wpr_decompress_range(ctx, frame.get(), frame.size(), 3001, 5000, part_there.get()),
            WPR_OK)
      << ctx.error();
  EXPECT_EQ(part_there.data(), part);
  EXPECT_EQ(work.cores(), 5000u);
}

TEST(Device, ItIsCountedWhoDidTheWork) {
  const Data raw = make(Kind::kGradient, 40000);
  const There there(raw);
  There back(raw.size());
  const struct {
    const char *recipe, *engine;
    bool device;
    const char* reason;
  } rows[] = {
      {"onebit", "auto", true, ""},
      {"terngrad+zstd", "auto", true, ""},
      {"bx:m=5", device_engine(), true, ""},
      {"onebit", "cpu", false, "another engine"},
      {"onebit", "cpu:scalar", false, "another engine"},
      {"zstd:1", "auto", false, "no kernel"},
      {"planes", "auto", true, ""},
      {"zfp:accuracy=1e-3", "auto", true, ""},
      {"zfp", "auto", false, "does not code"},
      {"auto", "auto", false, "looks at the values"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.recipe) + " " + row.engine);
    Context ctx(row.recipe);
    if (ctx.status != WPR_OK) continue;
    ctx.set("engine", row.engine);
    const Work work;
    const Made made = compress(ctx, there.get(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 40000));
    ASSERT_EQ(made.status, WPR_OK) << ctx.error();
    EXPECT_EQ(work.device(), row.device ? raw.size() : 0);
    EXPECT_EQ(work.cores(), row.device ? 0 : raw.size());
    if (!row.device) {
      EXPECT_NE(work.reason().find(row.reason), std::string::npos) << work.reason();
    }
    const Work second;
    size_t written = 0;
    ASSERT_EQ(
        wpr_decompress(ctx, made.frame.data(), made.frame.size(), back.get(), raw.size(), &written),
        WPR_OK)
        << ctx.error();
    // What auto leaves as it is, which a slow build may, is copied by nobody's work.
    if (std::string(row.recipe) != "auto") {
      EXPECT_GT(second.device() + second.cores(), 0u);
    }
    if (row.device) {
      EXPECT_EQ(second.cores(), 0u) << second.reason();
    }
  }
}

// A code that is larger than the values is found so by the device: the cores need not look.
TEST(Device, ValuesThatDoNotShrinkAreItsWorkToo) {
  const Data raw = make(Kind::kGradient, 40000);
  const There there(raw);
  Context ctx("zfp:precision=32");
  if (ctx.status != WPR_OK) GTEST_SKIP() << ctx.error();
  const Made expected = compress(ctx, raw.data(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 40000));
  ASSERT_EQ(expected.status, WPR_OK) << ctx.error();
  EXPECT_GT(expected.frame.size(), raw.size());
  const Work work;
  const Made made = compress(ctx, there.get(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 40000));
  EXPECT_EQ(made.frame, expected.frame);
  EXPECT_EQ(work.device(), raw.size());
  EXPECT_EQ(work.cores(), 0u) << work.reason();
}

// With the engine named, recipes that it has no kernel for are refused; their frames are read.
TEST(Device, FramesOfOtherCodecsAreReadWithTheEngineNamed) {
  const Data raw = make(Kind::kGradient, 20000);
  Context other("zstd:1");
  const Made made = compress(other, raw.data(), raw.size(), WPR_FLOAT32, wpr_bound(other, 20000));
  Context ctx("onebit");
  ctx.set("engine", device_engine());
  There back(raw.size());
  size_t written = 0;
  ASSERT_EQ(
      wpr_decompress(ctx, made.frame.data(), made.frame.size(), back.get(), raw.size(), &written),
      WPR_OK)
      << ctx.error();
  EXPECT_EQ(back.data(), raw);
}

TEST(Device, BadFramesAreRefusedAsOnTheCores) {
  std::mt19937 random(3);
  const Data raw = make(Kind::kGradient, 9000);
  for (const char* recipe : {"onebit", "bx:m=5", "fre:m=5", "topk:ratio=0.01", "zfp:rate=8",
                             "zeros", "terngrad+zstd", "zstd:1"}) {
    for (const char* checksum : {"on", "off"}) {
      Context ctx(recipe);
      if (ctx.status != WPR_OK) continue;
      ctx.set("checksum", checksum);
      const Made made = compress(ctx, raw.data(), raw.size(), WPR_FLOAT32, wpr_bound(ctx, 9000));
      ASSERT_EQ(made.status, WPR_OK);
      There back(raw.size()), short_one(raw.size() - 1);
      Data values(raw.size());
      size_t written = 0;
      const auto compare = [&](const Data& frame, const char* what) {
        const wpr_status expected =
            wpr_decompress(ctx, frame.data(), frame.size(), values.data(), values.size(), &written);
        const wpr_status status =
            wpr_decompress(ctx, frame.data(), frame.size(), back.get(), back.size(), &written);
        ASSERT_EQ(status, expected) << recipe << " " << what << ": " << ctx.error();
        if (status == WPR_OK) {
          ASSERT_EQ(back.data(), values) << recipe << " " << what;
        }
      };
      for (size_t n = 0; n < made.frame.size(); n += 1 + n / 40)
        compare({made.frame.begin(), made.frame.begin() + static_cast<ptrdiff_t>(n)}, "cut");
      for (int i = 0; i < 300; ++i) {
        Data frame = made.frame;
        frame[random() % frame.size()] ^= static_cast<uint8_t>(1u << random() % 8);
        compare(frame, "flipped");
      }
      EXPECT_EQ(wpr_decompress(ctx, made.frame.data(), made.frame.size(), short_one.get(),
                               short_one.size(), &written),
                WPR_DST_TOO_SMALL);
    }
  }
}

TEST(Device, ARoomTooSmallIsSaidAsByTheCores) {
  for (const char* recipe : {"onebit", "bx:m=5", "zeros", "zstd:1"}) {
    for (const Kind kind : {Kind::kGradient, Kind::kNoise}) {
      Context ctx(recipe);
      const Data raw = make(kind, 10000);
      const There there(raw);
      const size_t bound = wpr_bound(ctx, raw.size());
      for (size_t cap = 0; cap <= bound; cap += 97) {
        const Made expected = compress(ctx, raw.data(), raw.size(), WPR_FLOAT32, cap);
        const Made made = compress(ctx, there.get(), raw.size(), WPR_FLOAT32, cap);
        ASSERT_EQ(made.status, expected.status) << recipe << " " << cap << ": " << ctx.error();
        ASSERT_EQ(made.frame, expected.frame);
      }
    }
  }
}

TEST(Device, WhatNoDeviceMayHaveIsRefused) {
  Context ctx("zeros");
  const Data raw = make(Kind::kGradient, 4000);
  const There there(raw);
  Data out(2 * wpr_stream_bound(ctx, 4000));
  size_t n = 0, consumed = 0;
  int done = 0;
  void* at = there.get();
  const uint64_t shape = 1000;
  const auto row = [](void*, const wpr_choice*) {};
  EXPECT_EQ(wpr_add(ctx, at, 4000, out.data(), 100, out.data(), out.size(), &n), WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("a lies in memory of device 0"), std::string::npos) << ctx.error();
  EXPECT_EQ(wpr_add(ctx, out.data(), 100, out.data(), 100, at, 4000, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_compress_steps(ctx, at, raw.data(), 1000, 4, out.data(), out.size(), &n),
            WPR_PARAMETER);
  EXPECT_EQ(wpr_compress_steps(ctx, raw.data(), at, 1000, 4, out.data(), out.size(), &n),
            WPR_PARAMETER);
  EXPECT_EQ(wpr_take_steps(ctx, raw.data(), 100, at, 4000, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_take_steps(ctx, at, 4000, out.data(), 4000, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_stream_begin(ctx, WPR_BYTES, at, 4000, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_stream_begin(ctx, WPR_BYTES, out.data(), out.size(), &n), WPR_OK);
  EXPECT_EQ(wpr_stream_update(ctx, at, 4000, out.data(), out.size(), &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_stream_end(ctx, at, 4000, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_expand_begin(ctx), WPR_OK);
  EXPECT_EQ(wpr_expand_update(ctx, at, 100, &consumed, out.data(), 10, &n, &done), WPR_PARAMETER);
  EXPECT_EQ(wpr_explain(ctx, at, WPR_FLOAT32, 1, &shape, row, nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_hash(at, 4000, 0), 0u);
  Data rest(4000);
  EXPECT_EQ(wpr_compress_feedback(ctx, there.floats(), reinterpret_cast<float*>(rest.data()), 1000,
                                  out.data(), out.size(), &n),
            WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("one memory"), std::string::npos) << ctx.error();
  EXPECT_EQ(wpr_device_free(ctx, rest.data()), WPR_PARAMETER);
  void* none = at;
  EXPECT_EQ(wpr_device_alloc(ctx, "cpu", 0, 10, &none), WPR_PARAMETER);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(wpr_device_alloc(ctx, device_engine(), 99, 10, &none), WPR_PARAMETER);
  EXPECT_EQ(wpr_device_alloc(ctx, device_engine(), -1, 10, &none), WPR_PARAMETER);
  EXPECT_EQ(wpr_set_stream(ctx, WPR_NO_STREAM), WPR_OK);
  EXPECT_EQ(compress(ctx, at, 4000, WPR_FLOAT32, wpr_bound(ctx, 4000)).status, WPR_OK);
}

// As jobs_test.cpp has it on the emulator's streams, here on the default stream of any device.
TEST(Device, JobsDoAsTheCallsThatWait) {
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    if (ctx.status != WPR_OK) continue;
    ctx.set("probe", "off");
    wpr_device_work before, after;
    wpr_get_device_work(&before);
    const auto lost = [&] {
      wpr_get_device_work(&after);
      return after.cores_bytes > before.cores_bytes &&
             std::string(after.reason).find("on a stream") != std::string::npos;
    };
    std::vector<wpr_job*> jobs;
    const size_t sizes[] = {4, 4096, 30000, 9004};
    std::vector<Data> expected, made;
    std::vector<std::unique_ptr<There>> raw, back;
    for (const size_t n : sizes) {
      const Data data = make(Kind::kGradient, n);
      const Made one = compress(ctx, data.data(), n, WPR_FLOAT32, wpr_bound(ctx, n));
      if (one.status != WPR_OK) break;
      expected.push_back(one.frame);
      made.emplace_back(wpr_bound(ctx, n));
      raw.push_back(std::make_unique<There>(data));
      back.push_back(std::make_unique<There>(n));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const uint64_t shape = sizes[i] / 4;
      wpr_job* job = nullptr;
      ASSERT_EQ(wpr_compress_async(ctx, raw[i]->get(), WPR_FLOAT32, WPR_NO_SHAPE, &shape,
                                   made[i].data(), made[i].size(), &job),
                WPR_OK)
          << ctx.error();
      jobs.push_back(job);
      ASSERT_EQ(wpr_decompress_async(ctx, expected[i].data(), expected[i].size(), back[i]->get(),
                                     sizes[i], &job),
                WPR_OK)
          << ctx.error();
      jobs.push_back(job);
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      size_t written = 0, n = 0;
      ASSERT_EQ(wpr_wait(ctx, jobs[2 * i], &written), WPR_OK) << ctx.error();
      EXPECT_FALSE(lost()) << after.reason;
      made[i].resize(written);
      EXPECT_EQ(made[i], expected[i]);
      ASSERT_EQ(wpr_wait(ctx, jobs[2 * i + 1], &written), WPR_OK) << ctx.error();
      EXPECT_FALSE(lost()) << after.reason;
      Data values(sizes[i]);
      ASSERT_EQ(
          wpr_decompress(ctx, expected[i].data(), expected[i].size(), values.data(), sizes[i], &n),
          WPR_OK);
      EXPECT_EQ(back[i]->data(), values);
    }
    if (recipe == "bx:m=5" || recipe == "onebit") {
      EXPECT_EQ(after.cores_bytes, before.cores_bytes) << after.reason;
      EXPECT_GT(after.device_bytes, before.device_bytes);
    }
  }
}

TEST(Device, APointerSaysWhereItLies) {
  wpr_place place;
  int here = 0;
  for (const void* at : {static_cast<const void*>(&here), static_cast<const void*>(nullptr)}) {
    ASSERT_EQ(wpr_place_of(at, &place), WPR_OK);
    EXPECT_STREQ(place.engine, "");
    EXPECT_EQ(place.device, -1);
  }
  if (is_emulated()) {
    EXPECT_EQ(wpr_may_have_devices(), 0);  // of a GPU's driver nobody knows who loaded it
  }
  const There there(size_t{5000});
  EXPECT_EQ(wpr_may_have_devices(), 1);
  for (const size_t offset : {0, 1, 4999}) {
    ASSERT_EQ(wpr_place_of(static_cast<uint8_t*>(there.get()) + offset, &place), WPR_OK);
    EXPECT_EQ(std::string(place.engine).substr(0, 5), "cuda:");
    EXPECT_EQ(place.device, 0);
    EXPECT_EQ(place.on_cores != nullptr, is_emulated());
  }
  EXPECT_EQ(wpr_place_of(&here, nullptr), WPR_PARAMETER);
}

TEST(Device, BytesBehindItsEndAreNotRead) {
  if (!is_emulated()) GTEST_SKIP() << "a GPU's memory has other ends";
  Context ctx("zeros");
  const There there(size_t{4000});
  Data out(8000);
  EXPECT_EQ(wpr_copy(ctx, out.data(), there.get(), 4001), WPR_DEVICE) << ctx.error();
  EXPECT_EQ(wpr_copy(ctx, there.get(), out.data(), 4001), WPR_DEVICE) << ctx.error();
}

// The test of the tests: memory that they take for a device's ends who touches it.
TEST(DeviceDeathTest, TheCoresCannotTouchIt) {
  if (!is_emulated()) GTEST_SKIP() << "a GPU's own";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const There there(size_t{100});
        *static_cast<volatile uint8_t*>(there.get()) = 1;
      },
      "");
}

}  // namespace
}  // namespace wirepress
