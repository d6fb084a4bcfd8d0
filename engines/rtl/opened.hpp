// SPDX-License-Identifier: Apache-2.0
// A kernel of bytes, opened for a test of its core, and damaged codes for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress::rtl {

// Without parameters. Decoding writes nothing behind `most` bytes, and the core never hangs.
class Opened {
 public:
  explicit Opened(const Kernel* kernel) : kernel_(kernel) {
    if (kernel->open) {
      EXPECT_TRUE(kernel->open({}, &state_).ok());
    }
  }
  ~Opened() {
    if (kernel_->close) kernel_->close(state_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  std::vector<std::byte> encoded(const Codec& codec, ConstBytes raw) {
    std::vector<std::byte> code(codec.bound({}, raw.size()));
    size_t written = 0;
    EXPECT_TRUE(kernel_->encode(state_, {}, raw, code, &written).ok());
    code.resize(written);
    return code;
  }
  bool decode(ConstBytes code, size_t most, std::vector<std::byte>* out) {
    constexpr ptrdiff_t kGuard = 64;
    std::vector<std::byte> room(most + size_t{kGuard}, std::byte{0xA5});
    size_t written = 0;
    const Status status = kernel_->decode(state_, {}, code, Bytes(room).first(most), &written);
    EXPECT_NE(status.code(), Code::kDevice) << status.text();
    EXPECT_EQ(std::count(room.begin() + static_cast<ptrdiff_t>(most), room.end(), std::byte{0xA5}),
              kGuard);
    room.resize(written);
    *out = room;
    return status.ok();
  }

 private:
  const Kernel* kernel_;
  void* state_ = nullptr;
};

// Up to three bytes or bits of a code changed or added; half of the changes fall in its first
// `front` bytes, where headers and tables stand (0: all fall anywhere).
inline std::vector<std::byte> mutated(const std::vector<std::byte>& code, std::mt19937_64* random,
                                      size_t front = 0) {
  std::vector<std::byte> damaged = code;
  for (auto n = 1 + (*random)() % 3; n > 0; --n) {
    const bool in_front = front > 0 && (*random)() % 2 == 0;
    const size_t at = (*random)() % (in_front ? std::min(damaged.size(), front) : damaged.size());
    switch ((*random)() % 4) {
      case 0:
        damaged[at] ^= std::byte{1} << ((*random)() % 8);
        break;
      case 1:
        damaged[at] = static_cast<std::byte>((*random)());
        break;
      case 2:
        damaged[at] = std::byte{255};
        break;
      default:
        damaged.insert(damaged.begin() + static_cast<ptrdiff_t>(at),
                       static_cast<std::byte>((*random)()));
    }
  }
  return damaged;
}

}  // namespace wirepress::rtl
