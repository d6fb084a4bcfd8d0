// SPDX-License-Identifier: Apache-2.0
// A kernel of bytes, opened for a test of its core.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress::rtl {

// Without parameters, if none are given. Decoding writes nothing behind `most` bytes, and the core
// never hangs.
class Opened {
 public:
  explicit Opened(const Kernel* kernel, const Args& args = {}) : kernel_(kernel), args_(args) {
    if (kernel->open) {
      EXPECT_TRUE(kernel->open(args_, &state_).ok());
    }
  }
  ~Opened() {
    if (kernel_->close) kernel_->close(state_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  std::vector<std::byte> encoded(const Codec& codec, ConstBytes raw) {
    std::vector<std::byte> code(codec.bound(args_, raw.size()));
    size_t written = 0;
    EXPECT_TRUE(kernel_->encode(state_, args_, raw, code, &written).ok());
    code.resize(written);
    return code;
  }
  bool decode(ConstBytes code, size_t most, std::vector<std::byte>* out) {
    constexpr ptrdiff_t kGuard = 64;
    std::vector<std::byte> room(most + size_t{kGuard}, std::byte{0xA5});
    size_t written = 0;
    const Status status = kernel_->decode(state_, args_, code, Bytes(room).first(most), &written);
    EXPECT_NE(status.code(), Code::kDevice) << status.text();
    EXPECT_EQ(std::count(room.begin() + static_cast<ptrdiff_t>(most), room.end(), std::byte{0xA5}),
              kGuard);
    room.resize(written);
    *out = room;
    return status.ok();
  }

 private:
  const Kernel* kernel_;
  const Args args_;
  void* state_ = nullptr;
};

}  // namespace wirepress::rtl
