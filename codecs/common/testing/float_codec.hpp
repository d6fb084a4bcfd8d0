// SPDX-License-Identifier: Apache-2.0
// For the unit tests of codecs of float32 values: a codec with its parameters, all its kernels at
// once, and the values to try.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

using Words = std::vector<uint32_t>;
using Code8 = std::vector<std::byte>;

class FloatCodec {
 public:
  FloatCodec(const char* name, std::array<int, kMaxParams> params, uint64_t seed = 0,
             uint64_t first = 0)
      : entry_(*find_codec(name, std::strlen(name))) {
    args_.dtype = DType::kFloat32;
    args_.value = params;
    args_.seed = seed;
    args_.first = first;
    EXPECT_TRUE(entry_.codec->check(&args_).ok());
    for (const Kernel* kernel : entry_.kernels) states_.push_back(opened(*kernel));
  }

  // What every kernel writes.
  Code8 encode(ConstBytes raw) const {
    Code8 first;
    for (size_t i = 0; i < entry_.kernels.size(); ++i) {
      const Kernel* kernel = entry_.kernels[i];
      if (!kernel->usable()) continue;
      Code8 code(entry_.codec->bound(args_, raw.size()));
      size_t written = 0;
      const Status status = kernel->encode(states_[i].get(), args_, raw, code, &written);
      EXPECT_TRUE(status.ok()) << status.text();
      code.resize(written);
      if (kernel == entry_.kernels.back() || !first.empty()) {
        EXPECT_TRUE(first.empty() || code == first) << kernel->variant << " writes other bytes";
      }
      first = code;
    }
    return first;
  }
  Code8 encode(const Words& words) const { return encode(std::as_bytes(std::span(words))); }
  Code8 encode(const std::vector<float>& values) const {
    return encode(std::as_bytes(std::span(values)));
  }

  // What every kernel says, and decodes.
  Code decode(ConstBytes code, Bytes raw) const {
    Code said = Code::kOk;
    std::vector<std::byte> first;
    for (size_t i = 0; i < entry_.kernels.size(); ++i) {
      const Kernel* kernel = entry_.kernels[i];
      if (!kernel->usable()) continue;
      size_t written = 0;
      const Code now = kernel->decode(states_[i].get(), args_, code, raw, &written).code();
      const std::vector<std::byte> decoded(raw.begin(), raw.end());
      if (!first.empty()) {
        EXPECT_EQ(now, said) << kernel->variant;
        EXPECT_TRUE(now != Code::kOk || decoded == first) << kernel->variant << " decodes others";
      }
      said = now;
      first = decoded;
    }
    return said;
  }
  // There and back.
  Words pass(const Words& words) const {
    Words out(words.size());
    EXPECT_EQ(decode(encode(words), std::as_writable_bytes(std::span(out))), Code::kOk);
    return out;
  }
  std::vector<float> pass(const std::vector<float>& values) const {
    std::vector<float> out(values.size());
    EXPECT_EQ(decode(encode(values), std::as_writable_bytes(std::span(out))), Code::kOk);
    return out;
  }

 private:
  // What a kernel has opened, until the last copy of this goes.
  std::shared_ptr<void> opened(const Kernel& kernel) const {
    void* state = nullptr;
    if (kernel.open == nullptr || !kernel.usable()) return nullptr;
    EXPECT_TRUE(kernel.open(args_, &state).ok());
    return {state, kernel.close};
  }

  const Entry& entry_;
  Args args_;
  std::vector<std::shared_ptr<void>> states_;  // of entry_.kernels
};

// Calls function(words) with blocks of all 2^32 words where the environment has `all`, else of a
// sample that has every exponent, both signs, and the neighbours of every power of two.
template <typename Function>
void for_words(const char* all, Function function) {
  const uint64_t stride = std::getenv(all) != nullptr ? 1 : 8191;
  constexpr size_t kBlock = 1 << 16;
  Words words;
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += stride) {
    words.push_back(static_cast<uint32_t>(word));
    if (stride > 1 && (word >> 23) != ((word + stride) >> 23))
      for (uint32_t near = 0; near < 9; ++near)
        words.push_back(static_cast<uint32_t>(((word >> 23) + 1) << 23) - 4 + near);
    if (words.size() < kBlock) continue;
    function(words);
    if (testing::Test::HasFatalFailure()) return;
    words.clear();
  }
  if (!words.empty()) function(words);
}

inline float as_float(uint32_t word) { return std::bit_cast<float>(word); }
inline uint32_t as_word(float value) { return std::bit_cast<uint32_t>(value); }

// A repeatable 64-bit generator (xorshift), for data.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Normal in shape near enough, of one size.
  float gradient(double size) {
    return static_cast<float>((unit() + unit() + unit() + unit() - 2) * size);
  }

 private:
  uint64_t state_;
};

// Two-byte floats whose values are the multiples of 2^(max(e, lowest) - bits), e being the exponent
// of the value to be rounded, and that end below `limit`.
struct HalfKind {
  int bits;
  int lowest;
  double limit;
};

inline double quantum(const HalfKind& kind, double x) {
  return std::ldexp(1.0, std::max(x == 0 ? kind.lowest : std::ilogb(x), kind.lowest) - kind.bits);
}

// To nearest even, in doubles: they hold every float32 and every half between two codes.
inline double nearest(const HalfKind& kind, double x) {
  const double unit = quantum(kind, x);
  const double y = std::nearbyint(x / unit) * unit;
  return std::fabs(y) < kind.limit ? y : std::copysign(HUGE_VAL, x);
}

}  // namespace
}  // namespace wirepress
