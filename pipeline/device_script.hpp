// SPDX-License-Identifier: Apache-2.0
// What tests of data in memory of a device share: a context, that memory, and values.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace wirepress::device_tests {

using Data = std::vector<uint8_t>;

class Context {
 public:
  explicit Context(const std::string& recipe = "zstd:1") {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    status = wpr_set(ctx_, "recipe", recipe.c_str());
    set("block_size", "4KiB");
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

// Bytes in memory of a device of `engine`. `skip`: how far from the beginning of what was
// allocated.
class There {
 public:
  There(const char* engine, size_t size, int device, size_t skip) : size_(size), skip_(skip) {
    EXPECT_EQ(wpr_device_alloc(ctx_, engine, device, size + skip, &memory_), WPR_OK)
        << ctx_.error();
  }
  There(const char* engine, const Data& data, int device, size_t skip)
      : There(engine, data.size(), device, skip) {
    EXPECT_EQ(wpr_copy(ctx_, get(), data.data(), size_), WPR_OK) << ctx_.error();
  }
  ~There() { EXPECT_EQ(wpr_device_free(ctx_, memory_), WPR_OK); }
  There(const There&) = delete;
  There& operator=(const There&) = delete;
  void* get() const { return static_cast<uint8_t*>(memory_) + skip_; }
  float* floats() const { return static_cast<float*>(get()); }
  size_t size() const { return size_; }
  Data data() const {
    Data data(size_);
    EXPECT_EQ(wpr_copy(ctx_, data.data(), get(), size_), WPR_OK) << ctx_.error();
    return data;
  }

 private:
  mutable Context ctx_;
  void* memory_ = nullptr;
  size_t size_, skip_;
};

// n bytes of floats, as far as they go, a third of which are zeros.
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

}  // namespace wirepress::device_tests
