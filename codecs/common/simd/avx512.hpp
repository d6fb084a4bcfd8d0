// SPDX-License-Identifier: Apache-2.0
// Vectors of 32-bit lanes for kernels that are written once and compiled for several instruction
// sets: AVX-512. avx2.hpp and neon.hpp have the same functions; what each does is
// said here. Only files that are compiled for the instruction set include this.
#pragma once

// gcc 12 takes the operands that its own header leaves undefined for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstddef>
#include <cstdint>

namespace wirepress {
namespace {

struct Avx512 {
  using U = __m512i;
  using F = __m512;
  using M = __mmask16;  // one truth per lane
  static constexpr size_t kLanes = 16;

  static U load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, U v) { _mm512_storeu_si512(to, v); }
  static F load_float(const std::byte* from) { return _mm512_loadu_ps(from); }
  static void store_float(std::byte* to, F v) { _mm512_storeu_ps(to, v); }
  static U set(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
  static F set_float(float v) { return _mm512_set1_ps(v); }
  static U lanes() {  // 0, 1, 2 ...
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  static F as_float(U v) { return _mm512_castsi512_ps(v); }
  static U as_bits(F v) { return _mm512_castps_si512(v); }

  static U both(U a, U b) { return _mm512_and_si512(a, b); }
  static U either(U a, U b) { return _mm512_or_si512(a, b); }
  static U differ(U a, U b) { return _mm512_xor_si512(a, b); }
  static U add(U a, U b) { return _mm512_add_epi32(a, b); }
  static U subtract(U a, U b) { return _mm512_sub_epi32(a, b); }
  static U multiply(U a, U b) { return _mm512_mullo_epi32(a, b); }
  template <int kBits>
  static U left(U v) {
    return _mm512_slli_epi32(v, kBits);
  }
  template <int kBits>
  static U right(U v) {  // zeros come in
    return _mm512_srli_epi32(v, kBits);
  }
  static U right(U v, U counts) { return _mm512_srlv_epi32(v, counts); }  // 32 and more: 0
  static U most(U a, U b) { return _mm512_max_epu32(a, b); }              // unsigned
  static U least(U a, U b) { return _mm512_min_epu32(a, b); }
  // Signed comparison, lane by lane.
  static U if_above(U a, U b, U yes, U no) {
    return _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(a, b), no, yes);
  }
  static uint32_t greatest(U v) { return _mm512_reduce_max_epu32(v); }

  static M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M less(U a, U b) { return _mm512_cmplt_epi32_mask(a, b); }  // signed
  template <int kBit>
  static M has_bit(U v) {  // good for bits() alone
    return _mm512_test_epi32_mask(v, _mm512_set1_epi32(1 << kBit));
  }
  static M both_masks(M a, M b) { return static_cast<M>(a & b); }
  static U keep(M m, U v) { return _mm512_maskz_mov_epi32(m, v); }  // 0 in other lanes
  static F pick(M m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }
  // sum + v where m is set, or is not; sum elsewhere. No sum is -0: it could come out as +0.
  static F add_where(M m, F sum, F v) { return _mm512_mask_add_ps(sum, m, sum, v); }
  static F add_unless(M m, F sum, F v) { return add_where(_knot_mask16(m), sum, v); }
  // Sixteen lanes, and those of register `number` of them.
  static uint32_t bits(const M (&m)[1]) { return m[0]; }
  static M mask(uint32_t bits, size_t) { return static_cast<M>(bits); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F subtract(F a, F b) { return _mm512_sub_ps(a, b); }
  static F multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  static F from_int(U v) { return _mm512_cvtepi32_ps(v); }
  static U truncate(F v) { return _mm512_cvttps_epi32(v); }
  // To the nearest integer, to the even one of two.
  static U to_int(F v) {
    return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static U floor_to_int(F v) {
    return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  }

  // IEEE half precision, to nearest even.
  static void store_half(std::byte* to, F v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F load_half(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  // The upper halves of the lanes of two vectors.
  static void store_upper16(std::byte* to, U a, U b) {
    alignas(64) static constexpr uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                      23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                      45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, _mm512_load_si512(kOdd), b));
  }
  static U load_upper16(const std::byte* from) {  // the lower halves are 0
    return _mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))), 16);
  }
  // 4 * kLanes values that fit a signed byte, an unsigned byte, a signed nibble; the first of two
  // nibbles is the lower one.
  static void store_i8(std::byte* to, const U (&v)[4]) {
    _mm512_storeu_si512(to, in_order(_mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]),
                                                        _mm512_packs_epi32(v[2], v[3]))));
  }
  static void store_u8(std::byte* to, const U (&v)[4]) {
    _mm512_storeu_si512(to, in_order(_mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]),
                                                         _mm512_packs_epi32(v[2], v[3]))));
  }
  static void store_i4(std::byte* to, const U (&v)[4]) {
    const U bytes = in_order(
        _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3])));
    const U pairs = _mm512_maddubs_epi16(_mm512_and_si512(bytes, _mm512_set1_epi8(15)),
                                         _mm512_set1_epi16(0x1001));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(pairs));
  }
  static void load_i8(const std::byte* from, U (&v)[4]) {
    for (int i = 0; i < 4; ++i)
      v[i] = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i)));
  }
  static void load_i4(const std::byte* from, U (&v)[4]) {
    for (int i = 0; i < 4; ++i) {
      const U b =
          _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i)));
      // A byte in 64 bits; shifted by 28 its upper nibble comes to lie in the upper half.
      const U halves = _mm512_or_si512(b, _mm512_slli_epi64(b, 28));
      v[i] = _mm512_srai_epi32(_mm512_slli_epi32(halves, 28), 28);
    }
  }
  // 8-bit floats: sign, 7 bits that are those of a half below its sign shifted right by 7 - kLeft.
  template <int kLeft>
  static void load_f8(const std::byte* from, F (&v)[4]) {
    for (int i = 0; i < 4; i += 2) {
      const U b =
          _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 16 * i)));
      const U sign = _mm512_slli_epi16(_mm512_and_si512(b, _mm512_set1_epi16(0x80)), 8);
      const U size = _mm512_slli_epi16(_mm512_and_si512(b, _mm512_set1_epi16(0x7F)), kLeft);
      const U half = _mm512_or_si512(sign, size);
      v[i] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
      v[i + 1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
    }
  }
  // Whether one of 64 bytes, their bits `mask` alone, is above `top`; unsigned.
  static bool any_byte_above(const std::byte* from, int mask, int top) {
    const U v = _mm512_and_si512(load(from), _mm512_set1_epi8(static_cast<char>(mask)));
    return _mm512_cmpgt_epu8_mask(v, _mm512_set1_epi8(static_cast<char>(top))) != 0;
  }
  // Whether one of 64 bytes, their bits `mask` alone, is `value`.
  static bool any_byte_is(const std::byte* from, int mask, int value) {
    const U v = _mm512_and_si512(load(from), _mm512_set1_epi8(static_cast<char>(mask)));
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(static_cast<char>(value))) != 0;
  }

 private:
  // Packing works in each quarter of a register: groups of four bytes stand 0 4 8 12 1 5 ...
  static U in_order(U v) {
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
  }
};

}  // namespace
}  // namespace wirepress
