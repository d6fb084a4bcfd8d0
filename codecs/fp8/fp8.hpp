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
  static size_t values() { return 4096; }
  static size_t code_size(size_t n) { return 1 + n; }

  // The exponent of the chunk's scale, so that all its values are at most the format's largest, by
  // the bits of the largest absolute value.
  template <typename Kind>
  static int scale_of(uint32_t largest) {
    constexpr uint32_t kAbove = 0x1FFFFF;  // carries where the fraction is above 0.75
    const int exponent = static_cast<int>((largest + kAbove) >> 23) - 127;
    return std::clamp(exponent - Kind::kTopExponent, kLeastScale, Kind::kMostScale);
  }
  template <typename Kind>
  static bool scale_is_valid(int scale) {
    return scale >= kLeastScale && scale <= Kind::kMostScale;
  }
  static float power_of_2(int exponent) {  // -126 .. 127
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
  static bool is_zero(const std::byte* from, size_t size) {
    return std::all_of(from, from + size, [](std::byte b) { return b == std::byte{0}; });
  }

  bool e5m2;
};

}  // namespace
}  // namespace wirepress
