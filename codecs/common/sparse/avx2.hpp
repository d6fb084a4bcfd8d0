// SPDX-License-Identifier: Apache-2.0
// The scan of codecs/common/sparse/sparse.hpp for AVX2: 64 values with one branch, hits taken one
// by one.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "codecs/common/sparse/scalar.hpp"
#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Avx2 {
  static constexpr size_t kLanes = 8;
  static constexpr size_t kVectors = kGroup / kLanes;

  template <bool kFeedback>
  static size_t run(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                    uint32_t threshold, Keys* out) {
    // Magnitudes are not negative, so that signed comparison is right.
    const __m256i below = _mm256_set1_epi32(static_cast<int>(threshold) - 1);
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    Keys keys = *out;
    size_t i = begin;
    for (; i + kGroup <= n && keys.count + kGroup <= keys.room; i += kGroup) {
      __m256i word[kVectors], hit[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = 4 * (i + v * kLanes);
        word[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + at));
        if (kFeedback) {
          const __m256 e = _mm256_loadu_ps(reinterpret_cast<const float*>(residual + at));
          word[v] = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(word[v]), e));
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(residual + at), word[v]);
        }
        hit[v] = _mm256_cmpgt_epi32(_mm256_and_si256(word[v], magnitude), below);
      }
      const __m256i any = _mm256_or_si256(
          _mm256_or_si256(_mm256_or_si256(hit[0], hit[1]), _mm256_or_si256(hit[2], hit[3])),
          _mm256_or_si256(_mm256_or_si256(hit[4], hit[5]), _mm256_or_si256(hit[6], hit[7])));
      if (_mm256_testz_si256(any, any)) [[likely]]
        continue;
      uint64_t hits = 0;
      for (size_t v = 0; v < kVectors; ++v)
        hits |= static_cast<uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(hit[v])))
                << (v * kLanes);
      const std::byte* from = kFeedback ? residual : src;
      for (; hits != 0; hits &= hits - 1) {
        const size_t at = i + _tzcnt_u64(hits);
        uint32_t value;
        std::memcpy(&value, from + 4 * at, sizeof(value));
        keys.key[keys.count++] = make_key(canonical(value), static_cast<uint32_t>(at));
        if (kFeedback && (value & ~kSign) >= kInfinity) std::memset(residual + 4 * at, 0, 4);
      }
    }
    *out = keys;
    return Scalar::run<kFeedback>(src, residual, i, n, threshold, out);
  }
};

}  // namespace
}  // namespace wirepress::sparse
