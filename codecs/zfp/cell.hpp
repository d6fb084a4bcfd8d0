// SPDX-License-Identifier: Apache-2.0
// A cell of float32 at a fixed rate (spec.md, "A cell"), both ways, as libzfp codes it. A lane of a
// GPU has a cell in its registers, so loops over its values are unrolled.
#pragma once

#include <bit>

#include "base/device.hpp"
#include "codecs/zfp/zfp.hpp"

namespace wirepress::zfp {

constexpr unsigned kPlanes = 32;
constexpr int kBias = 127;
constexpr unsigned kCellHead = 9;  // bits before the planes: not all 0; the exponent
constexpr uint32_t kNegabinary = 0xAAAAAAAA;

// Where coefficient i stands.
template <int D>
constexpr uint32_t place_of(uint32_t i) {
  if constexpr (D == 1) {
    return i;
  } else if constexpr (D == 2) {
    constexpr uint8_t kPlaces[] = {0, 1, 4, 5, 2, 8, 6, 9, 3, 12, 10, 7, 13, 11, 14, 15};
    return kPlaces[i];
  } else {
    constexpr uint8_t kPlaces[] = {0x00, 0x01, 0x04, 0x10, 0x14, 0x11, 0x05, 0x02, 0x08, 0x20, 0x15,
                                   0x06, 0x12, 0x18, 0x09, 0x21, 0x24, 0x03, 0x0c, 0x30, 0x16, 0x19,
                                   0x25, 0x28, 0x22, 0x0a, 0x07, 0x13, 0x1c, 0x0d, 0x31, 0x34, 0x29,
                                   0x26, 0x1a, 0x17, 0x1d, 0x35, 0x0b, 0x23, 0x2c, 0x0e, 0x32, 0x38,
                                   0x2a, 0x1b, 0x27, 0x2d, 0x1e, 0x36, 0x39, 0x3c, 0x33, 0x0f, 0x2b,
                                   0x2e, 0x3a, 0x3d, 0x37, 0x1f, 0x3e, 0x3b, 0x2f, 0x3f};
    return kPlaces[i];
  }
}

// 2^exponent as float32, rounded.
constexpr float power_of_2(int exponent) {
  if (exponent < -149) return 0;
  return exponent < -126 ? std::bit_cast<float>(1u << (exponent + 149))
                         : std::bit_cast<float>(static_cast<uint32_t>(exponent + kBias) << 23);
}

// The least e so that |x| < 2^e, for a word without sign, not 0 and finite; at least 1 - 127.
constexpr int exponent_above(uint32_t size) {
  const int field = static_cast<int>(size >> 23);
  return field == 0 ? 1 - kBias : field - kBias + 1;
}

constexpr uint32_t halved(uint32_t x) {
  return static_cast<uint32_t>(static_cast<int32_t>(x) >> 1);
}

// Numbers are modulo 2^32.
static WPR_ON_DEVICE void lift(uint32_t& x, uint32_t& y, uint32_t& z, uint32_t& w) {
  x = halved(x + w), w -= x;
  z = halved(z + y), y -= z;
  x = halved(x + z), z -= x;
  w = halved(w + y), y -= w;
  w += halved(y), y -= halved(w);
}
static WPR_ON_DEVICE void lift_back(uint32_t& x, uint32_t& y, uint32_t& z, uint32_t& w) {
  y += halved(w), w -= halved(y);
  y += w, w = 2 * w - y;
  z += x, x = 2 * x - z;
  y += z, z = 2 * z - y;
  w += x, x = 2 * x - w;
}

template <int D, bool kBack>
static WPR_ON_DEVICE void transform(uint32_t (&v)[1 << (2 * D)]) {
  WPR_UNROLL
  for (int k = 0; k < D; ++k) {
    const uint32_t step = 1u << (2 * (kBack ? D - 1 - k : k));
    WPR_UNROLL
    for (uint32_t i = 0; i < 1u << (2 * D); ++i) {
      if ((i / step) % 4 != 0) continue;
      if constexpr (kBack)
        lift_back(v[i], v[i + step], v[i + 2 * step], v[i + 3 * step]);
      else
        lift(v[i], v[i + step], v[i + 2 * step], v[i + 3 * step]);
    }
  }
}

// The coefficients of values below 2^exponent, in their order.
template <int D>
static WPR_ON_DEVICE void coefficients_of(const float (&x)[1 << (2 * D)], int exponent,
                                          uint32_t (&c)[1 << (2 * D)]) {
  constexpr uint32_t kValues = 1u << (2 * D);
  const float scale = power_of_2(static_cast<int>(kPlanes) - 2 - exponent);
  uint32_t v[kValues];
  WPR_UNROLL
  for (uint32_t i = 0; i < kValues; ++i)
    v[i] = static_cast<uint32_t>(static_cast<int32_t>(scale * x[i]));
  transform<D, false>(v);
  WPR_UNROLL
  for (uint32_t i = 0; i < kValues; ++i) c[i] = (v[place_of<D>(i)] + kNegabinary) ^ kNegabinary;
}

template <int D>
static WPR_ON_DEVICE void values_of(const uint32_t (&c)[1 << (2 * D)], int exponent,
                                    float (&x)[1 << (2 * D)]) {
  constexpr uint32_t kValues = 1u << (2 * D);
  uint32_t v[kValues];
  WPR_UNROLL
  for (uint32_t i = 0; i < kValues; ++i) v[place_of<D>(i)] = (c[i] ^ kNegabinary) - kNegabinary;
  transform<D, true>(v);
  const float scale = power_of_2(exponent - static_cast<int>(kPlanes) + 2);
  WPR_UNROLL
  for (uint32_t i = 0; i < kValues; ++i)
    x[i] = static_cast<float>(static_cast<int32_t>(v[i])) * scale;
}

// Puts planes in `budget` bits, or fewer; out.put(bits, n).
template <int D, class Out>
static WPR_ON_DEVICE void put_planes(const uint32_t (&c)[1 << (2 * D)], uint32_t budget, Out& out) {
  constexpr uint32_t kValues = 1u << (2 * D);
  uint32_t n = 0;  // coefficients that had a 1
  for (uint32_t plane = kPlanes; budget > 0 && plane-- > 0;) {
    uint64_t x = 0;
    WPR_UNROLL
    for (uint32_t i = 0; i < kValues; ++i) x |= uint64_t{c[i] >> plane & 1} << i;
    const uint32_t known = n < budget ? n : budget;
    budget -= known;
    if (known > 0) out.put(known == 64 ? x : x & ((uint64_t{1} << known) - 1), known);
    x = known == 64 ? 0 : x >> known;
    while (budget > 0 && n < kValues) {
      --budget;
      out.put(x != 0, 1);
      if (x == 0) break;
      for (; budget > 0 && n < kValues - 1; ++n) {
        --budget;
        const uint64_t bit = x & 1;
        out.put(bit, 1);
        if (bit != 0) break;
        x >>= 1;
      }
      x >>= 1;
      ++n;
    }
  }
}

// The other way; in.take(n) gives the next n bits, at most 64.
template <int D, class In>
static WPR_ON_DEVICE void take_planes(uint32_t budget, In& in, uint32_t (&c)[1 << (2 * D)]) {
  constexpr uint32_t kValues = 1u << (2 * D);
  WPR_UNROLL
  for (uint32_t i = 0; i < kValues; ++i) c[i] = 0;
  uint32_t n = 0;
  for (uint32_t plane = kPlanes; budget > 0 && plane-- > 0;) {
    const uint32_t known = n < budget ? n : budget;
    budget -= known;
    uint64_t x = in.take(known);
    while (budget > 0 && n < kValues) {
      --budget;
      if (in.take(1) == 0) break;
      while (budget > 0 && n < kValues - 1) {
        --budget;
        if (in.take(1) != 0) break;
        ++n;
      }
      x |= uint64_t{1} << n++;
    }
    WPR_UNROLL
    for (uint32_t i = 0; i < kValues; ++i) c[i] |= static_cast<uint32_t>(x >> i & 1) << plane;
  }
}

}  // namespace wirepress::zfp
