// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/fp8/fp8.hpp"

namespace wirepress {
namespace {

struct Format : Fp8Layout, PlainSums {
  using Fp8Layout::Fp8Layout;

  template <typename Kind>
  static int code(float y) {
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
    return std::min(code, Kind::kTop) | static_cast<int>(word >> 24 & 0x80);
  }

  template <typename Kind>
  static float value(int code, int scale) {
    const int exponent = (code & 0x7F) >> Kind::kFraction;
    const uint32_t fraction = static_cast<uint32_t>(code) & ((1u << Kind::kFraction) - 1);
    const uint32_t one = exponent > 0 ? 1u << Kind::kFraction : 0;
    const uint32_t units = (one | fraction) << (std::max(exponent, 1) - 1);
    // In two steps: the units of a large scale times its power alone might be infinite.
    const float size = static_cast<float>(units) * power_of_2(Kind::kUnitExponent);
    return (code & 0x80 ? -size : size) * power_of_2(scale);
  }

  template <typename Kind>
  static void encode_as(const std::byte* x, size_t n, std::byte* out) {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; ++i)
      largest = std::max(largest, std::bit_cast<uint32_t>(load(x, i)) & ~kFloatSign);
    const bool finite = largest < kFloatInfinity;
    const int scale = scale_of<Kind>(largest);
    *out++ = finite ? static_cast<std::byte>(scale + kScaleBias) : std::byte{kNanScale};
    const float inverse = power_of_2(-scale);
    for (size_t i = 0; i < n; ++i)
      out[i] = finite ? static_cast<std::byte>(code<Kind>(load(x, i) * inverse)) : std::byte{0};
  }

  template <typename Kind>
  static bool decode_as(const std::byte* in, size_t n, std::byte* x) {
    const int byte = static_cast<int>(*in++);
    if (byte == kNanScale) {
      for (size_t i = 0; i < n; ++i) store(x, i, std::bit_cast<float>(kNan));
      return is_zero(in, n);
    }
    const int scale = byte - kScaleBias;
    if (!scale_is_valid<Kind>(scale)) return false;
    for (size_t i = 0; i < n; ++i) {
      const int code = static_cast<int>(in[i]);
      if ((code & 0x7F) > Kind::kTop) return false;
      store(x, i, value<Kind>(code, scale));
    }
    return true;
  }

  void encode(const std::byte* x, size_t n, uint64_t, std::byte* out) const {
    return e5m2 ? encode_as<E5M2>(x, n, out) : encode_as<E4M3>(x, n, out);
  }
  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    return e5m2 ? decode_as<E5M2>(in, n, x) : decode_as<E4M3>(in, n, x);
  }
};

}  // namespace

extern const Kernel fp8_scalar;
const Kernel fp8_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
