// SPDX-License-Identifier: Apache-2.0
// Four-byte elements, 32 at a time. Unpacks work within halves, so a register holds elements k and
// k + 16 in its two halves.
#include <immintrin.h>

#include "codecs/planes/planes.hpp"

namespace wirepress {
namespace {

struct Avx2Ops : PlainOps {
  static constexpr size_t kStep = 32;

  static bool line_is_zero(const std::byte* line) {
    const __m256i v = _mm256_or_si256(load(line), load(line + 32));
    return _mm256_testz_si256(v, v) != 0;
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, std::byte* const* planes) {
    if constexpr (sizeof(Word) == 4) {
      const __m256i group = _mm256_broadcastsi128_si256(
          _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
      for (; begin + kStep <= n; begin += kStep) {
        const std::byte* from = src + 4 * begin;
        __m256i v[4];
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k) {
          const __m256i x = _mm256_loadu2_m128i(half(from + 16 * k + 64), half(from + 16 * k));
          const __m256i turned = _mm256_or_si256(_mm256_slli_epi32(x, 1), _mm256_srli_epi32(x, 31));
          v[k] = _mm256_shuffle_epi8(turned, group);
        }
        const __m256i low0 = _mm256_unpacklo_epi32(v[0], v[1]);
        const __m256i low1 = _mm256_unpacklo_epi32(v[2], v[3]);
        const __m256i high0 = _mm256_unpackhi_epi32(v[0], v[1]);
        const __m256i high1 = _mm256_unpackhi_epi32(v[2], v[3]);
        store(planes[0] + begin, _mm256_unpacklo_epi64(low0, low1));
        store(planes[1] + begin, _mm256_unpackhi_epi64(low0, low1));
        store(planes[2] + begin, _mm256_unpacklo_epi64(high0, high1));
        store(planes[3] + begin, _mm256_unpackhi_epi64(high0, high1));
      }
    }
    PlainOps::split<Word>(src, begin, n, planes);
  }

  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, std::byte* dst) {
    if constexpr (sizeof(Word) == 4) {
      for (; begin + kStep <= n; begin += kStep) {
        const __m256i p0 = load(planes[0] + begin), p1 = load(planes[1] + begin);
        const __m256i p2 = load(planes[2] + begin), p3 = load(planes[3] + begin);
        const __m256i low01 = _mm256_unpacklo_epi8(p0, p1);
        const __m256i high01 = _mm256_unpackhi_epi8(p0, p1);
        const __m256i low23 = _mm256_unpacklo_epi8(p2, p3);
        const __m256i high23 = _mm256_unpackhi_epi8(p2, p3);
        std::byte* to = dst + 4 * begin;
        store_turned(to, _mm256_unpacklo_epi16(low01, low23));
        store_turned(to + 16, _mm256_unpackhi_epi16(low01, low23));
        store_turned(to + 32, _mm256_unpacklo_epi16(high01, high23));
        store_turned(to + 48, _mm256_unpackhi_epi16(high01, high23));
      }
    }
    PlainOps::join<Word>(planes, begin, n, dst);
  }

 private:
  static const __m128i* half(const std::byte* p) { return reinterpret_cast<const __m128i*>(p); }
  static __m256i load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::byte* to, __m256i v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
  }
  static void store_turned(std::byte* to, __m256i v) {
    const __m256i x = _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
    _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + 64), reinterpret_cast<__m128i*>(to), x);
  }
};

}  // namespace

extern const Kernel planes_avx2;
const Kernel planes_avx2 = Planes<Avx2Ops>::kernel("avx2", has_avx2);

}  // namespace wirepress
