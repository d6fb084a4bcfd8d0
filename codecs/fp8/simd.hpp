// SPDX-License-Identifier: Apache-2.0
// The kernel for vectors V (codecs/common/simd), 4 V::kLanes values at a time. Two passes over a
// chunk, which lies in the first-level cache: the largest value, and the codes.
#pragma once

#include "codecs/fp8/fp8.hpp"

namespace wirepress {
namespace {

template <typename V>
struct Fp8Simd : Fp8Layout, VectorSums<V> {
  using U = typename V::U;
  using F = typename V::F;
  static constexpr size_t kStep = 4 * V::kLanes;

  using Fp8Layout::Fp8Layout;

  static uint32_t largest(const std::byte* x, size_t n) {
    U most[4] = {V::set(0), V::set(0), V::set(0), V::set(0)};
    for (size_t i = 0; i < n; i += kStep)
      for (size_t k = 0; k < 4; ++k)
        most[k] =
            V::most(most[k], V::both(V::load(x + 4 * (i + k * V::kLanes)), V::set(~kFloatSign)));
    return V::greatest(V::most(V::most(most[0], most[1]), V::most(most[2], most[3])));
  }

  template <typename Kind>
  static U code(F y) {
    constexpr int kDrop = 23 - Kind::kFraction;
    constexpr uint32_t kSmallest = static_cast<uint32_t>(128 - Kind::kBias) << 23;
    constexpr uint32_t kRebias = static_cast<uint32_t>(127 - Kind::kBias) << Kind::kFraction;
    const U word = V::as_bits(y);
    const U size = V::both(word, V::set(~kFloatSign));
    const U odd = V::both(V::template right<kDrop>(size), V::set(1));
    const U rounded = V::add(V::add(size, V::set((1u << (kDrop - 1)) - 1)), odd);
    const U normal = V::subtract(V::template right<kDrop>(rounded), V::set(kRebias));
    // A sum whose last bit is worth a unit of the denormals.
    const F units = V::set_float(power_of_2(23 + Kind::kUnitExponent));
    const U denormal = V::subtract(V::as_bits(V::add(V::as_float(size), units)), V::as_bits(units));
    const U chosen = V::if_above(V::set(kSmallest), size, denormal, normal);
    return V::either(V::least(chosen, V::set(Kind::kTop)),
                     V::template right<24>(V::differ(word, size)));
  }

  template <typename Kind>
  static void encode_as(const std::byte* x, size_t n, std::byte* out) {
    const uint32_t most = largest(x, n);
    if (most >= kFloatInfinity) {
      *out = std::byte{kNanScale};
      std::memset(out + 1, 0, n);
      return;
    }
    const int scale = scale_of<Kind>(most);
    *out++ = static_cast<std::byte>(scale + kScaleBias);
    const F inverse = V::set_float(power_of_2(-scale));
    for (size_t i = 0; i < n; i += kStep) {
      U codes[4];
      for (size_t k = 0; k < 4; ++k)
        codes[k] = code<Kind>(V::multiply(V::load_float(x + 4 * (i + k * V::kLanes)), inverse));
      V::store_u8(out + i, codes);
    }
  }

  template <typename Kind>
  static bool decode_as(const std::byte* in, size_t n, std::byte* x) {
    // A code is the upper part of a half with another bias.
    constexpr int kLeft = 10 - Kind::kFraction;
    constexpr int kHalfBias = 15;
    const int byte = static_cast<int>(*in++);
    if (byte == kNanScale) {
      for (size_t i = 0; i < n; i += V::kLanes) V::store(x + 4 * i, V::set(kNan));
      return is_zero(in, n);
    }
    const int scale = byte - kScaleBias;
    if (!scale_is_valid<Kind>(scale)) return false;
    for (size_t i = 0; i < n; i += 64)
      if (V::any_byte_above(in + i, 0x7F, Kind::kTop)) return false;
    const F unit = V::set_float(power_of_2(scale + kHalfBias - Kind::kBias));
    for (size_t i = 0; i < n; i += kStep) {
      F values[4];
      V::template load_f8<kLeft>(in + i, values);
      for (size_t k = 0; k < 4; ++k)
        V::store_float(x + 4 * (i + k * V::kLanes), V::multiply(values[k], unit));
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
}  // namespace wirepress
