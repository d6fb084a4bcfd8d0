// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/fp8/fp8.hpp"

namespace wirepress {
namespace {

struct Format : Fp8Layout, PlainSums {
  using Fp8Layout::Fp8Layout;

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
