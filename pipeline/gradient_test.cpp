// SPDX-License-Identifier: Apache-2.0
// Error feedback, adding while expanding, and sums of frames, for every lossy codec of the registry
// that takes float32, alone and before a lossless one, on one thread and on several.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using Values = std::vector<float>;
using Frame = std::vector<uint8_t>;

Values gradient(size_t n, unsigned seed) {
  Values values(n);
  std::mt19937_64 random(seed);
  std::exponential_distribution<float> size(1000.0f);
  for (float& value : values) {
    const uint64_t draw = random();
    value = draw % 10 < 4 ? 0.0f : draw & 1024 ? size(random) : -size(random);
  }
  return values;
}

uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

class Door {
 public:
  Door(const std::string& recipe, const char* threads) {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    for (const auto& [key, value] :
         {std::pair{"block_size", "4096"}, {"threads", threads}, {"recipe", recipe.c_str()}})
      EXPECT_EQ(wpr_set(ctx_, key, value), WPR_OK) << wpr_error(ctx_);
  }
  ~Door() { wpr_free(ctx_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  Frame feedback(const Values& values, Values* residual) {
    return frame(values.size(), [&](void* dst, size_t cap, size_t* size) {
      return wpr_compress_feedback(ctx_, values.data(), residual->data(), values.size(), dst, cap,
                                   size);
    });
  }
  Frame compress(const Values& values) {
    const uint64_t n = values.size();
    return frame(n, [&](void* dst, size_t cap, size_t* size) {
      return wpr_compress_array(ctx_, values.data(), WPR_FLOAT32, WPR_NO_SHAPE, &n, dst, cap, size);
    });
  }
  Values decompress(const Frame& frame, size_t n) {
    Values values(n);
    size_t size = 0;
    EXPECT_EQ(wpr_decompress(ctx_, frame.data(), frame.size(), values.data(), 4 * n, &size), WPR_OK)
        << wpr_error(ctx_);
    EXPECT_EQ(size, 4 * n);
    return values;
  }
  void decompress_add(const Frame& frame, Values* values) {
    size_t n = 0;
    EXPECT_EQ(
        wpr_decompress_add(ctx_, frame.data(), frame.size(), values->data(), values->size(), &n),
        WPR_OK)
        << wpr_error(ctx_);
    EXPECT_EQ(n, values->size());
  }
  wpr_status add(const Frame& a, const Frame& b, size_t n, Frame* sum) {
    sum->resize(wpr_bound(ctx_, 4 * n));
    size_t size = 0;
    const wpr_status status =
        wpr_add(ctx_, a.data(), a.size(), b.data(), b.size(), sum->data(), sum->size(), &size);
    sum->resize(size);
    return status;
  }
  wpr_ctx* get() { return ctx_; }

 private:
  template <typename Make>
  Frame frame(size_t n, Make make) {
    Frame frame(wpr_bound(ctx_, 4 * n));
    size_t size = 0;
    EXPECT_EQ(make(frame.data(), frame.size(), &size), WPR_OK) << wpr_error(ctx_);
    frame.resize(size);
    return frame;
  }
  wpr_ctx* ctx_ = nullptr;
};

// Lossy codecs that take float32, alone and with zstd behind them; and one that is not lossy.
std::vector<std::string> recipes() {
  std::vector<std::string> result = {"zstd:1"};
  for (const Entry& entry : registry()) {
    Args args = default_args(*entry.codec, DType::kFloat32);
    if (entry.codec->lossless || (entry.codec->check && !entry.codec->check(&args).ok())) continue;
    result.push_back(entry.codec->name);
    result.push_back(std::string(entry.codec->name) + "+zstd:1");
  }
  return result;
}

constexpr size_t kN = 20011;  // 19 blocks and an odd rest

TEST(Gradient, FeedbackLosesNothing) {
  const Values g = gradient(kN, 1), e = gradient(kN, 2);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Frame first;
    for (const char* threads : {"1", "3"}) {
      Door door(recipe, threads);
      Values residual = e;
      const Frame frame = door.feedback(g, &residual);
      if (first.empty()) first = frame;
      ASSERT_EQ(frame, first) << "the bytes depend on the number of threads";
      const Values decoded = door.decompress(frame, kN);
      for (size_t i = 0; i < kN; ++i) {
        const float t = g[i] + e[i];
        ASSERT_EQ(bits(residual[i]), bits(t - decoded[i])) << i << ": " << t << " - " << decoded[i];
      }
    }
  }
}

TEST(Gradient, FeedbackIsTheCodeOfTheSum) {
  const Values g = gradient(kN, 3), e = gradient(kN, 4);
  Values sum(kN);
  for (size_t i = 0; i < kN; ++i) sum[i] = g[i] + e[i];
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "1");
    Values residual = e;
    const Frame a = door.feedback(g, &residual);
    const Frame b = door.compress(sum);
    if (a.size() != b.size()) continue;  // a block that did not shrink is raw in b only
    ASSERT_EQ(a, b);
  }
}

TEST(Gradient, BrokenValuesLeaveNoResidual) {
  Values g = gradient(kN, 5);
  g[100] = std::numeric_limits<float>::quiet_NaN();
  g[9000] = std::numeric_limits<float>::infinity();
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "1");
    Values residual(kN);
    const Values decoded = door.decompress(door.feedback(g, &residual), kN);
    for (const float value : residual) ASSERT_TRUE(std::isfinite(value));
    EXPECT_FALSE(std::isfinite(decoded[100]));
    EXPECT_FALSE(std::isfinite(decoded[9000]));
  }
}

TEST(Gradient, AddsWhileExpanding) {
  const Values g = gradient(kN, 6), start = gradient(kN, 7);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    for (const char* threads : {"1", "3"}) {
      Door door(recipe, threads);
      const Frame frame = door.compress(g);
      const Values decoded = door.decompress(frame, kN);
      Values sum = start;
      door.decompress_add(frame, &sum);
      for (size_t i = 0; i < kN; ++i) ASSERT_EQ(bits(sum[i]), bits(start[i] + decoded[i])) << i;
    }
  }
}

// What the sum is, each codec's document says and its own test proves; here: that it can be used.
TEST(Gradient, FramesAreAddedOrRefused) {
  const Values g = gradient(kN, 8), h = gradient(kN, 9);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "2");
    const Frame a = door.compress(g), b = door.compress(h);
    Frame sum;
    const wpr_status status = door.add(a, b, kN, &sum);
    if (status == WPR_UNSUPPORTED) continue;
    ASSERT_EQ(status, WPR_OK) << wpr_error(door.get());
    const Values x = door.decompress(a, kN), y = door.decompress(b, kN);
    const Values z = door.decompress(sum, kN);
    double error = 0, size = 0;
    for (size_t i = 0; i < kN; ++i) {
      error += std::pow(double{z[i]} - (double{x[i]} + double{y[i]}), 2);
      size += std::pow(double{x[i]} + double{y[i]}, 2);
    }
    EXPECT_LE(error, 0.5 * size);  // topq keeps half of what two codes send
  }
}

TEST(Gradient, MisuseIsRefused) {
  Door door("fre:m=5", "1");
  const Values g = gradient(100, 10);
  Values residual(100);
  Frame frame(wpr_bound(door.get(), 400) - 1), sum;
  size_t size = 0;
  EXPECT_EQ(wpr_compress_feedback(door.get(), g.data(), residual.data(), 100, frame.data(),
                                  frame.size(), &size),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(residual, Values(100)) << "touched before it was sure to succeed";
  ASSERT_EQ(wpr_set(door.get(), "recipe", "fre:m=23"), WPR_OK);
  const Frame bytes = [&] {
    Frame out(wpr_bound(door.get(), 400));
    EXPECT_EQ(wpr_compress(door.get(), g.data(), 400, out.data(), out.size(), &size), WPR_OK);
    out.resize(size);
    return out;
  }();
  EXPECT_EQ(wpr_decompress_add(door.get(), bytes.data(), bytes.size(), residual.data(), 100, &size),
            WPR_PARAMETER)
      << "bytes are no float32";
  ASSERT_EQ(wpr_set(door.get(), "recipe", "fre:m=5"), WPR_OK);
  const Frame a = door.compress(g);
  EXPECT_EQ(wpr_decompress_add(door.get(), a.data(), a.size(), residual.data(), 99, &size),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(door.add(a, a, 100, &sum), WPR_UNSUPPORTED);
  EXPECT_NE(std::string(wpr_error(door.get())).find("fre"), std::string::npos);
  EXPECT_EQ(door.add(a, door.compress(gradient(101, 1)), 101, &sum), WPR_PARAMETER);
}

}  // namespace
}  // namespace wirepress
