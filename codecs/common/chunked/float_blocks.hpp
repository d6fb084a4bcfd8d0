// SPDX-License-Identifier: Apache-2.0
// Blocks of float32 values as a scale and small integers: what the kernels of int8 and int4 share.
// A block's code is its scale, a float32, and then kBits a value. The scale is cut to 17
// significant bits, so that a decoded value, integer times scale, is exact in any arithmetic.
#pragma once

#include <cmath>

#include "base/device.hpp"
#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress {
namespace {

template <int kBitsPerCode>
struct BlockLayout {
  enum ParamIndex { kBlock = 0, kRound = 1 };
  static constexpr int kBits = kBitsPerCode;
  static constexpr int kLevels = (1 << (kBits - 1)) - 1;  // codes are -kLevels .. kLevels
  static constexpr int kNoCode = -kLevels - 1;
  static constexpr size_t kHeadSize = 4;
  static constexpr uint32_t kNanScale = 0x7FC00000;   // a value is not finite: all become NaN
  static constexpr uint32_t kZeroBelow = 0x0D800000;  // 2^-100: blocks below become zeros
  static constexpr uint32_t kDropped = 0x7F;          // lower bits of a scale that are 0
  // The scale of 2^-100, and the largest whose product with kLevels is finite.
  static constexpr uint32_t kLeastScale = kBits == 8 ? 0x0A010280 : 0x0C124980;
  static constexpr uint32_t kMostScale = kBits == 8 ? 0x7C010200 : 0x7E124900;
  // Stochastic: to the nearest integer below code + (2 r + 1) / 512, r being 8 random bits. That
  // keeps 1/512 away from 0 and 1, so that codes of decoded values are certain: products with the
  // reciprocal of the scale err by less.
  static constexpr int kRandomShift = 24;
  static constexpr float kRandomUnit = 0x1p-8f;
  static constexpr float kRandomHalf = 0x1p-9f;

  explicit BlockLayout(const Args& args)
      : block(size_t{1} << args.value[kBlock]),
        stochastic(args.value[kRound] != 0),
        seed(args.seed) {}
  constexpr size_t values() const { return block; }
  static constexpr size_t code_size(size_t n) { return kHeadSize + (n * kBits + 7) / 8; }

  // By the bits of the block's largest absolute value.
  static constexpr uint32_t scale_of(uint32_t largest) {
    if (largest >= kFloatInfinity) return kNanScale;
    if (largest < kZeroBelow) return 0;
    const float exact = std::bit_cast<float>(largest) / static_cast<float>(kLevels);
    const uint32_t raised = (std::bit_cast<uint32_t>(exact) + kDropped) & ~kDropped;
    return raised < kMostScale ? raised : kMostScale;
  }
  static constexpr bool codes_are_zero(uint32_t scale) { return scale == 0 || scale == kNanScale; }

  static constexpr bool scale_is_valid(uint32_t scale) {
    return codes_are_zero(scale) ||
           ((scale & kDropped) == 0 && scale >= kLeastScale && scale <= kMostScale);
  }
  // Codes of a block whose scale says all.
  static bool is_zero(const std::byte* from, size_t size) {
    return std::all_of(from, from + size, [](std::byte b) { return b == std::byte{0}; });
  }

  // inverse: of the scale; index: what a draw depends on.
  WPR_HD int code(float x, float inverse, uint64_t index) const {
    const float y = x * inverse;
    if (stochastic) {
      const float random = static_cast<float>(random_bits(seed, index) >> kRandomShift);
      return static_cast<int>(std::floor(y + (random * kRandomUnit + kRandomHalf)));
    }
    constexpr float kNoFraction = 0x1.8p23f;  // sums with it are rounded to an integer
    return static_cast<int>((y + kNoFraction) - kNoFraction);
  }

  size_t block;
  bool stochastic;
  uint64_t seed;
};

// For vectors V (codecs/common/simd), 4 V::kLanes values at a time.
template <typename V, int kBits>
struct BlockSimd : BlockLayout<kBits>, VectorSums<V> {
  using U = typename V::U;
  using F = typename V::F;
  using Layout = BlockLayout<kBits>;
  static constexpr size_t kStep = 4 * V::kLanes;

  using BlockLayout<kBits>::BlockLayout;

  static uint32_t largest(const std::byte* x, size_t n) {
    U most[4] = {V::set(0), V::set(0), V::set(0), V::set(0)};
    for (size_t i = 0; i < n; i += kStep)
      for (size_t k = 0; k < 4; ++k)
        most[k] =
            V::most(most[k], V::both(V::load(x + 4 * (i + k * V::kLanes)), V::set(~kFloatSign)));
    return V::greatest(V::most(V::most(most[0], most[1]), V::most(most[2], most[3])));
  }

  template <bool kStochastic>
  void encode_codes(const std::byte* x, size_t n, uint64_t index, F inverse, std::byte* out) const {
    for (size_t i = 0; i < n; i += kStep, out += kStep * kBits / 8) {
      U codes[4];
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = i + k * V::kLanes;
        const F y = V::multiply(V::load_float(x + 4 * at), inverse);
        if constexpr (kStochastic) {
          const U random =
              V::template right<Layout::kRandomShift>(random_vector<V>(this->seed, index + at));
          const F up = V::add(V::multiply(V::from_int(random), V::set_float(Layout::kRandomUnit)),
                              V::set_float(Layout::kRandomHalf));
          codes[k] = V::floor_to_int(V::add(y, up));
        } else {
          codes[k] = V::to_int(y);
        }
      }
      if constexpr (kBits == 8)
        V::store_i8(out, codes);
      else
        V::store_i4(out, codes);
    }
  }

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    const uint32_t scale = Layout::scale_of(largest(x, n));
    std::memcpy(out, &scale, sizeof(scale));
    out += Layout::kHeadSize;
    if (Layout::codes_are_zero(scale)) {
      std::memset(out, 0, (n * kBits + 7) / 8);
      return;
    }
    const F inverse = V::set_float(1.0f / std::bit_cast<float>(scale));
    if (this->stochastic)
      encode_codes<true>(x, n, index, inverse, out);
    else
      encode_codes<false>(x, n, index, inverse, out);
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    uint32_t scale;
    std::memcpy(&scale, in, sizeof(scale));
    if (!Layout::scale_is_valid(scale)) return false;
    in += Layout::kHeadSize;
    const size_t size = (n * kBits + 7) / 8;
    if (Layout::codes_are_zero(scale)) {
      for (size_t i = 0; i < n; i += V::kLanes) V::store(x + 4 * i, V::set(scale));
      return Layout::is_zero(in, size);
    }
    for (size_t at = 0; at < size; at += 64) {
      if constexpr (kBits == 8) {
        if (V::any_byte_is(in + at, 0xFF, 0x80)) return false;
      } else {
        if (V::any_byte_is(in + at, 0x0F, 0x08) || V::any_byte_is(in + at, 0xF0, 0x80))
          return false;
      }
    }
    if (kBits == 4 && n % 2 != 0 && (in[size - 1] >> 4) != std::byte{0}) return false;
    const F unit = V::set_float(std::bit_cast<float>(scale));
    for (size_t i = 0; i < n; i += kStep) {
      U codes[4];
      if constexpr (kBits == 8)
        V::load_i8(in + i, codes);
      else
        V::load_i4(in + i / 2, codes);
      for (size_t k = 0; k < 4; ++k)
        V::store_float(x + 4 * (i + k * V::kLanes), V::multiply(V::from_int(codes[k]), unit));
    }
    return true;
  }
};

}  // namespace
}  // namespace wirepress
