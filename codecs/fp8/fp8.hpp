// SPDX-License-Identifier: Apache-2.0
// What the kernels of fp8 share: sizes, constants and the choice of a chunk's scale (spec.md).
#pragma once

#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress {
namespace {

// A format of 8-bit floats: sign, 7 - kFraction bits of exponent, kFraction bits of fraction.
template <int kFractionBits>
struct Fp8Kind {
  static constexpr int kFraction = kFractionBits;
  static constexpr int kBias = kFraction == 3 ? 7 : 15;
  static constexpr int kTop = kFraction == 3 ? 0x7E : 0x7B;     // the largest: 448 or 57344
  static constexpr int kTopExponent = kFraction == 3 ? 8 : 15;  // of the largest, 1.75 * 2^this
  static constexpr int kMostScale = 127 - kTopExponent;         // the largest value is finite
  static constexpr int kUnitExponent = 1 - kBias - kFraction;   // of the smallest denormal
};
using E4M3 = Fp8Kind<3>;
using E5M2 = Fp8Kind<2>;

struct Fp8Layout {
  enum ParamIndex { kFormat = 0 };
  static constexpr const char* kName = "fp8";
  static constexpr int kScaleBias = 127;
  static constexpr uint8_t kNanScale = 255;  // a value is not finite: all become NaN
  static constexpr uint32_t kNan = 0x7FC00000;
  // Smaller scales would bring in float32's denormals, which not every processor mode computes.
  static constexpr int kLeastScale = -108;

  explicit Fp8Layout(const Args& args) : e5m2(args.value[kFormat] != 0) {}
  static constexpr size_t values() { return 4096; }
  static constexpr size_t code_size(size_t n) { return 1 + n; }

  // The exponent of the chunk's scale, so that all its values are at most the format's largest, by
  // the bits of the largest absolute value.
  template <typename Kind>
  static constexpr int scale_of(uint32_t largest) {
    constexpr uint32_t kAbove = 0x1FFFFF;  // carries where the fraction is above 0.75
    const int exponent = static_cast<int>((largest + kAbove) >> 23) - 127;
    const int scale = exponent - Kind::kTopExponent;
    return scale < kLeastScale ? kLeastScale : scale < Kind::kMostScale ? scale : Kind::kMostScale;
  }
  template <typename Kind>
  static constexpr bool scale_is_valid(int scale) {
    return scale >= kLeastScale && scale <= Kind::kMostScale;
  }
  static constexpr float power_of_2(int exponent) {  // -126 .. 127
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
  static bool is_zero(const std::byte* from, size_t size) {
    return std::all_of(from, from + size, [](std::byte b) { return b == std::byte{0}; });
  }

  // Of a value that the scale has divided.
  template <typename Kind>
  static constexpr int code(float y) {
    constexpr int kDrop = 23 - Kind::kFraction;
    constexpr float kSmallest = 1.0f / (1 << (Kind::kBias - 1));  // not denormal
    constexpr float kWholeUnits = 0x1p23f;                        // sums with it have no fraction
    const uint32_t word = std::bit_cast<uint32_t>(y);
    const uint32_t size = word & ~kFloatSign;
    int code = 0;
    if (std::bit_cast<float>(size) >= kSmallest) {
      const uint32_t kept = (size + (1u << (kDrop - 1)) - 1 + (size >> kDrop & 1)) >> kDrop;
      code = static_cast<int>(kept) - ((127 - Kind::kBias) << Kind::kFraction);
    } else {
      const float units = std::bit_cast<float>(size) * power_of_2(-Kind::kUnitExponent);
      code = static_cast<int>((units + kWholeUnits) - kWholeUnits);
    }
    return (code < Kind::kTop ? code : Kind::kTop) | static_cast<int>(word >> 24 & 0x80);
  }

  template <typename Kind>
  static constexpr float value(int code, int scale) {
    const int exponent = (code & 0x7F) >> Kind::kFraction;
    const uint32_t fraction = static_cast<uint32_t>(code) & ((1u << Kind::kFraction) - 1);
    const uint32_t one = exponent > 0 ? 1u << Kind::kFraction : 0;
    const uint32_t units = (one | fraction) << (exponent > 1 ? exponent - 1 : 0);
    // In two steps: the units of a large scale times its power alone might be infinite.
    const float size = static_cast<float>(units) * power_of_2(Kind::kUnitExponent);
    return (code & 0x80 ? -size : size) * power_of_2(scale);
  }

  bool e5m2;
};

}  // namespace
}  // namespace wirepress
