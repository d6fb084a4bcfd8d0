// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/fp16/fp16.hpp"

namespace wirepress {
namespace {

struct Format : Fp16Layout, PlainSums {
  using Fp16Layout::Fp16Layout;

  // The lower `shift` bits go; shift is 1 to 31, size + 2^shift fits.
  uint32_t cut(uint32_t size, uint32_t shift, uint64_t index) const {
    if (stochastic) return (size + (random_bits(seed, index) >> (32 - shift))) >> shift;
    return (size + (1u << (shift - 1)) - 1 + (size >> shift & 1)) >> shift;
  }

  uint16_t code(uint32_t word, uint64_t index) const {
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

  static uint32_t value(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t size = half & 0x7FFFu;
    if (size > kHalfInfinity) return sign | kFloatNan | size << 13;
    if (size == kHalfInfinity) return sign | kFloatInfinity;
    if (size >= 0x400) return sign | ((size + kRebias) << 13);
    constexpr float kUnit = 0x1p-24f;
    return sign | std::bit_cast<uint32_t>(static_cast<float>(size) * kUnit);
  }

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    for (size_t i = 0; i < n; ++i) {
      uint32_t word;
      std::memcpy(&word, x + 4 * i, sizeof(word));
      const uint16_t half = code(word, index + i);
      std::memcpy(out + 2 * i, &half, sizeof(half));
    }
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + 2 * i, sizeof(half));
      const uint32_t word = value(half);
      std::memcpy(x + 4 * i, &word, sizeof(word));
    }
    return true;
  }
};

}  // namespace

extern const Kernel fp16_scalar;
const Kernel fp16_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
