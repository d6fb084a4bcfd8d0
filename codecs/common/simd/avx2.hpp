// SPDX-License-Identifier: Apache-2.0
// The functions of avx512.hpp for AVX2 and F16C.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wirepress {
namespace {

struct Avx2 {
  using U = __m256i;
  using F = __m256;
  using M = __m256;
  static constexpr size_t kLanes = 8;

  static U load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::byte* to, U v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  static F load_float(const std::byte* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
  static void store_float(std::byte* to, F v) { _mm256_storeu_ps(reinterpret_cast<float*>(to), v); }
  static U set(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }
  static F set_float(float v) { return _mm256_set1_ps(v); }
  static U lanes() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static F as_float(U v) { return _mm256_castsi256_ps(v); }
  static U as_bits(F v) { return _mm256_castps_si256(v); }

  static U both(U a, U b) { return _mm256_and_si256(a, b); }
  static U either(U a, U b) { return _mm256_or_si256(a, b); }
  static U differ(U a, U b) { return _mm256_xor_si256(a, b); }
  static U add(U a, U b) { return _mm256_add_epi32(a, b); }
  static U subtract(U a, U b) { return _mm256_sub_epi32(a, b); }
  static U multiply(U a, U b) { return _mm256_mullo_epi32(a, b); }
  template <int kBits>
  static U left(U v) {
    return _mm256_slli_epi32(v, kBits);
  }
  template <int kBits>
  static U right(U v) {
    return _mm256_srli_epi32(v, kBits);
  }
  static U right(U v, U counts) { return _mm256_srlv_epi32(v, counts); }
  static U most(U a, U b) { return _mm256_max_epu32(a, b); }
  static U least(U a, U b) { return _mm256_min_epu32(a, b); }
  static U if_above(U a, U b, U yes, U no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(a, b));
  }
  static uint32_t greatest(U v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
  }

  static M less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M less(U a, U b) { return as_float(_mm256_cmpgt_epi32(b, a)); }
  template <int kBit>
  static M has_bit(U v) {  // in the sign of each lane, which is all that bits() reads
    return as_float(_mm256_slli_epi32(v, 31 - kBit));
  }
  static M both_masks(M a, M b) { return _mm256_and_ps(a, b); }
  static U keep(M m, U v) { return both(as_bits(m), v); }
  static F pick(M m, F yes, F no) { return _mm256_blendv_ps(no, yes, m); }
  // sum + v where m is set, or is not; sum elsewhere. No sum is -0: it could come out as +0.
  static F add_where(M m, F sum, F v) { return _mm256_add_ps(sum, _mm256_and_ps(m, v)); }
  static F add_unless(M m, F sum, F v) { return _mm256_add_ps(sum, _mm256_andnot_ps(m, v)); }
  static uint32_t bits(const M (&m)[2]) {
    return static_cast<uint32_t>(_mm256_movemask_ps(m[0])) |
           static_cast<uint32_t>(_mm256_movemask_ps(m[1])) << 8;
  }
  static M mask(uint32_t bits, size_t number) {
    const U low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const U own = _mm256_slli_epi32(low, 8 * static_cast<int>(number));
    return as_float(_mm256_cmpeq_epi32(both(set(bits), own), own));
  }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F subtract(F a, F b) { return _mm256_sub_ps(a, b); }
  static F multiply(F a, F b) { return _mm256_mul_ps(a, b); }
  static F from_int(U v) { return _mm256_cvtepi32_ps(v); }
  static U truncate(F v) { return _mm256_cvttps_epi32(v); }
  static U to_int(F v) {
    return _mm256_cvttps_epi32(_mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static U floor_to_int(F v) { return _mm256_cvttps_epi32(_mm256_floor_ps(v)); }

  static void store_half(std::byte* to, F v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F load_half(const std::byte* from) { return _mm256_cvtph_ps(load16(from)); }
  static void store_upper16(std::byte* to, U a, U b) {
    const U halves = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    store(to, _mm256_permute4x64_epi64(halves, 0xD8));
  }
  static U load_upper16(const std::byte* from) {
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(from)), 16);
  }
  static void store_i8(std::byte* to, const U (&v)[4]) {
    store(to, in_order(_mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                                          _mm256_packs_epi32(v[2], v[3]))));
  }
  static void store_u8(std::byte* to, const U (&v)[4]) {
    store(to, in_order(_mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]),
                                           _mm256_packs_epi32(v[2], v[3]))));
  }
  static void store_i4(std::byte* to, const U (&v)[4]) {
    const U bytes = in_order(
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])));
    const U pairs = _mm256_maddubs_epi16(_mm256_and_si256(bytes, _mm256_set1_epi8(15)),
                                         _mm256_set1_epi16(0x1001));
    const U packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
  }
  static void load_i8(const std::byte* from, U (&v)[4]) {
    for (int i = 0; i < 4; ++i)
      v[i] = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i)));
  }
  static void load_i4(const std::byte* from, U (&v)[4]) {
    for (int i = 0; i < 4; ++i) {
      int bits;
      std::memcpy(&bits, from + 4 * i, sizeof(bits));
      const U b = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bits));
      const U halves = _mm256_or_si256(b, _mm256_slli_epi64(b, 28));
      v[i] = _mm256_srai_epi32(_mm256_slli_epi32(halves, 28), 28);
    }
  }
  template <int kLeft>
  static void load_f8(const std::byte* from, F (&v)[4]) {
    for (int i = 0; i < 4; i += 2) {
      const U b = _mm256_cvtepu8_epi16(load16(from + 8 * i));
      const U sign = _mm256_slli_epi16(_mm256_and_si256(b, _mm256_set1_epi16(0x80)), 8);
      const U size = _mm256_slli_epi16(_mm256_and_si256(b, _mm256_set1_epi16(0x7F)), kLeft);
      const U half = _mm256_or_si256(sign, size);
      v[i] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
      v[i + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
    }
  }
  static bool any_byte_above(const std::byte* from, int mask, int top) {
    const U m = _mm256_set1_epi8(static_cast<char>(mask));
    const U v =
        _mm256_max_epu8(_mm256_and_si256(load(from), m), _mm256_and_si256(load(from + 32), m));
    const U most = _mm256_set1_epi8(static_cast<char>(top));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(v, most), most)) != -1;
  }
  static bool any_byte_is(const std::byte* from, int mask, int value) {
    const U m = _mm256_set1_epi8(static_cast<char>(mask));
    const U wanted = _mm256_set1_epi8(static_cast<char>(value));
    const U a = _mm256_cmpeq_epi8(_mm256_and_si256(load(from), m), wanted);
    const U b = _mm256_cmpeq_epi8(_mm256_and_si256(load(from + 32), m), wanted);
    return _mm256_movemask_epi8(_mm256_or_si256(a, b)) != 0;
  }

 private:
  static __m128i load16(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static U in_order(U v) {
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
};

}  // namespace
}  // namespace wirepress
