// SPDX-License-Identifier: Apache-2.0
// Masks by comparisons and movemask; what is kept is taken one by one.
#include <immintrin.h>

#include "codecs/sparse/plain.hpp"

namespace wirepress {
namespace {

struct Ops : PlainOps {
  static __m256i load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  // Which elements of a chunk are 0, one after the other.
  static uint64_t zeros(const __m256i (&v)[2], uint8_t) {
    const __m256i none = _mm256_setzero_si256();
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v[0], none))) |
           static_cast<uint64_t>(
               static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v[1], none))))
               << 32;
  }
  static uint64_t zeros(const __m256i (&v)[4], uint16_t) {
    const __m256i none = _mm256_setzero_si256();
    uint64_t mask = 0;
    for (int i = 0; i < 4; i += 2) {
      const __m256i pair =
          _mm256_packs_epi16(_mm256_cmpeq_epi16(v[i], none), _mm256_cmpeq_epi16(v[i + 1], none));
      const __m256i sorted = _mm256_permute4x64_epi64(pair, 0xD8);
      mask |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(sorted))) << 16 * i;
    }
    return mask;
  }
  static uint64_t zeros(const __m256i (&v)[8], uint32_t) {
    uint64_t mask = 0;
    for (int i = 0; i < 8; ++i) {
      const __m256i equal = _mm256_cmpeq_epi32(v[i], _mm256_setzero_si256());
      mask |= static_cast<uint64_t>(
                  static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))))
              << 8 * i;
    }
    return mask;
  }
  static __m256i all(uint8_t v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static __m256i all(uint16_t v) { return _mm256_set1_epi16(static_cast<short>(v)); }
  static __m256i all(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }

  template <typename T>
  static uint64_t test(const std::byte* v, T bits) {
    __m256i word[2 * sizeof(T)];
    __m256i any = _mm256_setzero_si256();
    for (size_t i = 0; i < 2 * sizeof(T); ++i) {
      word[i] = _mm256_and_si256(load(v + 32 * i), all(bits));
      any = _mm256_or_si256(any, word[i]);
    }
    return _mm256_testz_si256(any, any) ? 0 : ~zeros(word, T{});
  }
  template <typename T>
  static uint64_t differ(const std::byte* before, const std::byte* after) {
    __m256i word[2 * sizeof(T)];
    __m256i any = _mm256_setzero_si256();
    for (size_t i = 0; i < 2 * sizeof(T); ++i) {
      word[i] = _mm256_xor_si256(load(before + 32 * i), load(after + 32 * i));
      any = _mm256_or_si256(any, word[i]);
    }
    return _mm256_testz_si256(any, any) ? 0 : ~zeros(word, T{});
  }
};

}  // namespace

extern const Kernel sparse_avx2;
const Kernel sparse_avx2 = Sparse<Ops>::kernel("avx2", has_avx2);

}  // namespace wirepress
