// SPDX-License-Identifier: Apache-2.0
// Elements of 2, 4 and 8 bytes, 32 of them at a time, transposed in registers by byte shuffles and
// unpacks. Unpacks work within 128-bit lanes, so a register holds elements k and k + 16 in its two
// lanes from the load on and needs no lane crossing at the end.
#include <immintrin.h>

#include "codecs/shuffle/shuffle.hpp"

namespace wirepress {
namespace {

using namespace shuffle;

constexpr size_t kStep = 32;

inline __m256i load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}
// Two half registers, `apart` bytes from each other.
inline __m256i load_halves(const std::byte* from, size_t apart) {
  return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + apart),
                             reinterpret_cast<const __m128i*>(from));
}
inline void store_halves(std::byte* to, size_t apart, __m256i value) {
  _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + apart), reinterpret_cast<__m128i*>(to),
                       value);
}

size_t split2(const std::byte* src, std::byte* dst, size_t n) {
  const __m256i group = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, src += 2 * kStep) {
    const __m256i a = _mm256_shuffle_epi8(load_halves(src, 32), group);
    const __m256i b = _mm256_shuffle_epi8(load_halves(src + 16, 32), group);
    store(dst + i, _mm256_unpacklo_epi64(a, b));
    store(dst + n + i, _mm256_unpackhi_epi64(a, b));
  }
  return i;
}

size_t join2(const std::byte* src, std::byte* dst, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, dst += 2 * kStep) {
    const __m256i a = load(src + i);
    const __m256i b = load(src + n + i);
    store_halves(dst, 32, _mm256_unpacklo_epi8(a, b));
    store_halves(dst + 16, 32, _mm256_unpackhi_epi8(a, b));
  }
  return i;
}

size_t split4(const std::byte* src, std::byte* dst, size_t n) {
  const __m256i group = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, src += 4 * kStep) {
    __m256i v[4];
    for (size_t k = 0; k < 4; ++k) v[k] = _mm256_shuffle_epi8(load_halves(src + 16 * k, 64), group);
    const __m256i low0 = _mm256_unpacklo_epi32(v[0], v[1]);
    const __m256i low1 = _mm256_unpacklo_epi32(v[2], v[3]);
    const __m256i high0 = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i high1 = _mm256_unpackhi_epi32(v[2], v[3]);
    store(dst + i, _mm256_unpacklo_epi64(low0, low1));
    store(dst + n + i, _mm256_unpackhi_epi64(low0, low1));
    store(dst + 2 * n + i, _mm256_unpacklo_epi64(high0, high1));
    store(dst + 3 * n + i, _mm256_unpackhi_epi64(high0, high1));
  }
  return i;
}

size_t join4(const std::byte* src, std::byte* dst, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, dst += 4 * kStep) {
    const __m256i p0 = load(src + i);
    const __m256i p1 = load(src + n + i);
    const __m256i p2 = load(src + 2 * n + i);
    const __m256i p3 = load(src + 3 * n + i);
    const __m256i low01 = _mm256_unpacklo_epi8(p0, p1);
    const __m256i high01 = _mm256_unpackhi_epi8(p0, p1);
    const __m256i low23 = _mm256_unpacklo_epi8(p2, p3);
    const __m256i high23 = _mm256_unpackhi_epi8(p2, p3);
    store_halves(dst, 64, _mm256_unpacklo_epi16(low01, low23));
    store_halves(dst + 16, 64, _mm256_unpackhi_epi16(low01, low23));
    store_halves(dst + 32, 64, _mm256_unpacklo_epi16(high01, high23));
    store_halves(dst + 48, 64, _mm256_unpackhi_epi16(high01, high23));
  }
  return i;
}

size_t split8(const std::byte* src, std::byte* dst, size_t n) {
  const __m256i group = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, src += 8 * kStep) {
    __m256i v[8];       // [k]: elements 2k and 2k + 1, byte by byte
    __m256i fours[8];   // [2t + h]: bytes 4h .. 4h + 3 of elements 4t .. 4t + 3
    __m256i eights[8];  // [4s + 2h + g]: bytes 4h + 2g and + 1 of elements 8s .. 8s + 7
    for (size_t k = 0; k < 8; ++k)
      v[k] = _mm256_shuffle_epi8(load_halves(src + 16 * k, 128), group);
    for (size_t t = 0; t < 4; ++t) {
      fours[2 * t] = _mm256_unpacklo_epi16(v[2 * t], v[2 * t + 1]);
      fours[2 * t + 1] = _mm256_unpackhi_epi16(v[2 * t], v[2 * t + 1]);
    }
    for (size_t s = 0; s < 2; ++s) {
      for (size_t h = 0; h < 2; ++h) {
        const __m256i a = fours[4 * s + h];
        const __m256i b = fours[4 * s + 2 + h];
        eights[4 * s + 2 * h] = _mm256_unpacklo_epi32(a, b);
        eights[4 * s + 2 * h + 1] = _mm256_unpackhi_epi32(a, b);
      }
    }
    for (size_t pair = 0; pair < 4; ++pair) {
      store(dst + 2 * pair * n + i, _mm256_unpacklo_epi64(eights[pair], eights[4 + pair]));
      store(dst + (2 * pair + 1) * n + i, _mm256_unpackhi_epi64(eights[pair], eights[4 + pair]));
    }
  }
  return i;
}

size_t join8(const std::byte* src, std::byte* dst, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep, dst += 8 * kStep) {
    __m256i twos[8];   // [4h + t]: bytes 2t and 2t + 1 of elements 8h .. 8h + 7
    __m256i fours[8];  // [4f + q]: bytes 4f .. 4f + 3 of elements 4q .. 4q + 3
    for (size_t t = 0; t < 4; ++t) {
      const __m256i a = load(src + 2 * t * n + i);
      const __m256i b = load(src + (2 * t + 1) * n + i);
      twos[t] = _mm256_unpacklo_epi8(a, b);
      twos[4 + t] = _mm256_unpackhi_epi8(a, b);
    }
    for (size_t f = 0; f < 2; ++f) {
      for (size_t h = 0; h < 2; ++h) {
        const __m256i a = twos[4 * h + 2 * f];
        const __m256i b = twos[4 * h + 2 * f + 1];
        fours[4 * f + 2 * h] = _mm256_unpacklo_epi16(a, b);
        fours[4 * f + 2 * h + 1] = _mm256_unpackhi_epi16(a, b);
      }
    }
    for (size_t q = 0; q < 4; ++q) {
      store_halves(dst + 32 * q, 128, _mm256_unpacklo_epi32(fours[q], fours[4 + q]));
      store_halves(dst + 32 * q + 16, 128, _mm256_unpackhi_epi32(fours[q], fours[4 + q]));
    }
  }
  return i;
}

void split(const std::byte* src, std::byte* dst, size_t n, size_t size) {
  switch (size) {
    case 2:
      return split_range<2>(src, dst, n, size, split2(src, dst, n), n);
    case 4:
      return split_range<4>(src, dst, n, size, split4(src, dst, n), n);
    case 8:
      return split_range<8>(src, dst, n, size, split8(src, dst, n), n);
    default:
      return split_range<0>(src, dst, n, size, 0, n);
  }
}

void join(const std::byte* src, std::byte* dst, size_t n, size_t size) {
  switch (size) {
    case 2:
      return join_range<2>(src, dst, n, size, join2(src, dst, n), n);
    case 4:
      return join_range<4>(src, dst, n, size, join4(src, dst, n), n);
    case 8:
      return join_range<8>(src, dst, n, size, join8(src, dst, n), n);
    default:
      return join_range<0>(src, dst, n, size, 0, n);
  }
}

Status encode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return run(args, src, dst, written, split);
}

Status decode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return run(args, src, dst, written, join);
}

}  // namespace

extern const Kernel shuffle_avx2;
const Kernel shuffle_avx2 = {
    .engine = "cpu",
    .variant = "avx2",
    .usable = has_avx2,
    .open = nullptr,
    .close = nullptr,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
