// SPDX-License-Identifier: Apache-2.0
// 8 values at a time in the encoder; the decoder is the portable one, with this set's shifts.
#include <immintrin.h>

#include "codecs/fre/lanes.hpp"

namespace wirepress {
namespace {

struct Eight {
  static constexpr size_t kLanes = 8;
  __m256i v;

  static Eight all(uint32_t value) { return {_mm256_set1_epi32(static_cast<int>(value))}; }
  static Eight load(const uint32_t* from) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
  }
  void store(uint32_t* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  template <class Element>
  static Eight load_values(const std::byte* from) {
    if constexpr (sizeof(Element) == 4) {
      return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
    } else {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      return Eight{_mm256_cvtepu16_epi32(half)}.left(16);
    }
  }

  Eight operator&(Eight w) const { return {_mm256_and_si256(v, w.v)}; }
  Eight operator|(Eight w) const { return {_mm256_or_si256(v, w.v)}; }
  Eight operator+(Eight w) const { return {_mm256_add_epi32(v, w.v)}; }
  Eight operator-(Eight w) const { return {_mm256_sub_epi32(v, w.v)}; }
  Eight operator==(Eight w) const { return {_mm256_cmpeq_epi32(v, w.v)}; }
  Eight without(Eight w) const { return {_mm256_andnot_si256(w.v, v)}; }
  Eight left(int n) const { return {_mm256_sll_epi32(v, _mm_cvtsi32_si128(n))}; }
  Eight right(int n) const { return {_mm256_srl_epi32(v, _mm_cvtsi32_si128(n))}; }
  Eight left_each(Eight w) const { return {_mm256_sllv_epi32(v, w.v)}; }
  Eight at_least(Eight w) const { return {_mm256_cmpeq_epi32(_mm256_max_epu32(v, w.v), v)}; }
  Eight smaller(Eight w) const { return {_mm256_min_epu32(v, w.v)}; }
  Eight distance() const { return {_mm256_abs_epi32(v)}; }
  bool any() const { return _mm256_testz_si256(v, v) == 0; }
  static Eight pick(Eight mask, Eight a, Eight b) { return {_mm256_blendv_epi8(b.v, a.v, mask.v)}; }
  Eight after(Eight last) const {
    const __m256i middle = _mm256_permute2x128_si256(last.v, v, 0x21);
    return {_mm256_alignr_epi8(v, middle, 12)};
  }
  // Two tables of 8; bit 3 of the index says which.
  Eight look_up(const uint32_t* table) const {
    const __m256i low = _mm256_permutevar8x32_epi32(load(table).v, v);
    const __m256i high = _mm256_permutevar8x32_epi32(load(table + 8).v, v);
    return {
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high),
                                             _mm256_castsi256_ps(_mm256_slli_epi32(v, 28))))};
  }
  void store_twos(Eight size, uint64_t* bits, uint64_t* sizes) const {
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    const __m256i first = _mm256_and_si256(size.v, low);
    const __m256i second = _mm256_sllv_epi64(_mm256_srli_epi64(v, 32), first);
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits),
                       _mm256_or_si256(_mm256_and_si256(v, low), second));
    _mm256_store_si256(reinterpret_cast<__m256i*>(sizes),
                       _mm256_add_epi64(first, _mm256_srli_epi64(size.v, 32)));
  }
};

}  // namespace

extern const Kernel fre_avx2;
const Kernel fre_avx2 = make_kernel<Lanes<Eight>>("avx2", has_avx2);

}  // namespace wirepress
