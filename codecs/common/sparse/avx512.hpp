// SPDX-License-Identifier: Apache-2.0
// The scan of codecs/common/sparse/sparse.hpp for AVX-512: 64 values with one branch, hits
// compressed in registers.
#pragma once

#include <immintrin.h>

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Avx512 {
  static constexpr size_t kLanes = 16;
  static constexpr size_t kVectors = kGroup / kLanes;

  // Masked forms with all lanes: the plain ones make g++ 12 warn of its own headers.
  static constexpr __mmask8 kAll = 0xFF;

  // The keys of the lanes in `hits`, whose first lane has index i. Stores whole registers.
  static void append(__m512i words, __mmask16 hits, size_t i, Keys* keys) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i inverse =  // ~(i + lane)
        _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(~static_cast<uint32_t>(i))), lane);
    const __m512i word = _mm512_maskz_compress_epi32(hits, words);
    const __m512i index = _mm512_maskz_compress_epi32(hits, inverse);
    store_keys<0>(keys->key + keys->count, word, index);
    const size_t count = static_cast<size_t>(_mm_popcnt_u32(hits));
    if (count > 8) store_keys<1>(keys->key + keys->count + 8, word, index);
    keys->count += count;
  }

  template <int kHalf>
  static void store_keys(uint64_t* to, __m512i words, __m512i inverses) {
    const auto widen = [](__m512i x) {
      return _mm512_maskz_cvtepu32_epi64(kAll, _mm512_maskz_extracti64x4_epi64(kAll, x, kHalf));
    };
    const __m512i w = widen(words);
    const __m512i i = widen(inverses);
    const __m512i key = _mm512_or_si512(
        _mm512_or_si512(_mm512_maskz_slli_epi64(kAll, w, 33), _mm512_maskz_slli_epi64(kAll, i, 1)),
        _mm512_maskz_srli_epi64(kAll, w, 31));
    _mm512_storeu_si512(to, key);
  }

  template <bool kFeedback>
  static size_t run(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                    uint32_t threshold, Keys* out) {
    const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i infinity = _mm512_set1_epi32(static_cast<int>(kInfinity));
    Keys keys = *out;
    size_t i = begin;
    const auto hits_of = [&](__m512i word) {
      return _mm512_cmpge_epu32_mask(_mm512_and_si512(word, magnitude), least);
    };
    const auto take = [&](__m512i word, __mmask16 hits, size_t at) {
      const __m512i size = _mm512_and_si512(word, magnitude);
      const __mmask16 nan = _mm512_cmpgt_epu32_mask(size, infinity);
      append(_mm512_mask_mov_epi32(word, nan, _mm512_set1_epi32(kNan)), hits, at, &keys);
      if (!kFeedback) return;
      const __mmask16 infinite = _mm512_mask_cmpge_epu32_mask(hits, size, infinity);
      if (infinite) _mm512_mask_storeu_epi32(residual + 4 * at, infinite, _mm512_setzero_si512());
    };
    for (; i + kGroup <= n && keys.count + kGroup <= keys.room; i += kGroup) {
      __m512i word[kVectors];
      __mmask16 hits[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = 4 * (i + v * kLanes);
        word[v] = _mm512_loadu_si512(src + at);
        if (kFeedback) {
          word[v] = _mm512_castps_si512(
              _mm512_add_ps(_mm512_castsi512_ps(word[v]), _mm512_loadu_ps(residual + at)));
          _mm512_storeu_si512(residual + at, word[v]);
        }
        hits[v] = hits_of(word[v]);
      }
      if ((hits[0] | hits[1] | hits[2] | hits[3]) == 0) [[likely]]
        continue;
      for (size_t v = 0; v < kVectors; ++v)
        if (hits[v]) take(word[v], hits[v], i + v * kLanes);
    }
    for (; i < n && keys.count + kGroup <= keys.room; i += kLanes) {  // the last, or near the end
      const size_t lanes = n - i < kLanes ? n - i : kLanes;
      const __mmask16 there = static_cast<__mmask16>((1u << lanes) - 1);
      __m512i word = _mm512_maskz_loadu_epi32(there, src + 4 * i);
      if (kFeedback) {
        const __m512 e = _mm512_maskz_loadu_ps(there, residual + 4 * i);
        word = _mm512_castps_si512(_mm512_maskz_add_ps(there, _mm512_castsi512_ps(word), e));
        _mm512_mask_storeu_epi32(residual + 4 * i, there, word);
      }
      if (const __mmask16 hits = hits_of(word)) take(word, hits, i);
    }
    *out = keys;
    return i < n ? i : n;
  }
};

}  // namespace
}  // namespace wirepress::sparse
