// SPDX-License-Identifier: Apache-2.0
// What the kernels of fp16 share: parameters, sizes and constants (spec.md).
#pragma once

#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress {
namespace {

struct Fp16Layout {
  enum ParamIndex { kRound = 0, kSaturate = 1 };
  static constexpr const char* kName = "fp16";
  static constexpr uint32_t kLargest = 0x477FE000;   // 65504 as float32
  static constexpr uint32_t kSmallest = 0x38800000;  // 2^-14 as float32: below are denormals
  static constexpr uint32_t kRebias = 112 << 10;     // exponent 127 becomes 15
  static constexpr uint32_t kHalfInfinity = 0x7C00;
  static constexpr uint32_t kHalfNan = 0x7E00;
  static constexpr uint32_t kFloatNan = 0x7FC00000;  // float32's own that becomes kHalfNan
  // A float32 with exponent e below kSmallest is its fraction, with the leading 1, shifted right by
  // kDenormalShift - e.
  static constexpr uint32_t kDenormalShift = 126;

  explicit Fp16Layout(const Args& args)
      : stochastic(args.value[kRound] != 0),
        saturate(args.value[kSaturate] != 0),
        seed(args.seed) {}
  // For the first-level cache, with feedback's buffers; it does not show in the code.
  static constexpr size_t values() { return 1024; }
  static constexpr size_t code_size(size_t n) { return 2 * n; }

  // Of a float32's bits; index: what a draw depends on.
  constexpr uint16_t code(uint32_t word, uint64_t index) const {
    const uint32_t sign = word >> 16 & 0x8000;
    uint32_t size = word & ~kFloatSign;
    if (size > kFloatInfinity) return kHalfNan;
    if (saturate && size < kFloatInfinity) size = std::min(size, kLargest);
    uint32_t half = 0;
    if (size >= kSmallest) {
      half = std::min(cut(size, 13, index) - kRebias, kHalfInfinity);
    } else {
      const uint32_t shift = kDenormalShift - (size >> 23);
      if (shift < 32) half = cut((size & 0x7FFFFF) | 0x800000, shift, index);
    }
    return static_cast<uint16_t>(sign | half);
  }

  static constexpr uint32_t value(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t size = half & 0x7FFFu;
    if (size > kHalfInfinity) return sign | kFloatNan | size << 13;
    if (size == kHalfInfinity) return sign | kFloatInfinity;
    if (size >= 0x400) return sign | ((size + kRebias) << 13);
    constexpr float kUnit = 0x1p-24f;
    return sign | std::bit_cast<uint32_t>(static_cast<float>(size) * kUnit);
  }

  bool stochastic;
  bool saturate;
  uint64_t seed;

 private:
  // The lower `shift` bits go; shift is 1 to 31, size + 2^shift fits.
  constexpr uint32_t cut(uint32_t size, uint32_t shift, uint64_t index) const {
    if (stochastic) return (size + (random_bits(seed, index) >> (32 - shift))) >> shift;
    return (size + (1u << (shift - 1)) - 1 + (size >> shift & 1)) >> shift;
  }
};

}  // namespace
}  // namespace wirepress
