// SPDX-License-Identifier: Apache-2.0
// Four-byte elements, 64 at a time: a register's 16 elements are sorted by bytes, and then quarters
// of four registers change places.
#include "codecs/common/simd/avx512.hpp"

#include "codecs/planes/planes.hpp"

namespace wirepress {
namespace {

// Of a matrix of 64 bytes in `rows` columns, the bytes column by column.
using Table = std::array<uint8_t, 64>;
constexpr Table columns(size_t rows) {
  Table t{};
  for (size_t i = 0; i < 64; ++i)
    t[i] = static_cast<uint8_t>(i % (64 / rows) * rows + i / (64 / rows));
  return t;
}
alignas(64) constexpr Table kByByte = columns(4);
alignas(64) constexpr Table kByElement = columns(16);

struct Avx512Ops : PlainOps {
  static constexpr size_t kStep = 64;

  static bool line_is_zero(const std::byte* line) {
    const __m512i v = _mm512_loadu_si512(line);
    return _mm512_test_epi32_mask(v, v) == 0;
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, std::byte* const* planes) {
    if constexpr (sizeof(Word) == 4) {
      const __m512i by_byte = _mm512_load_si512(kByByte.data());
      for (; begin + kStep <= n; begin += kStep) {
        __m512i v[4];
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k)
          v[k] = _mm512_permutexvar_epi8(
              by_byte, _mm512_rol_epi32(_mm512_loadu_si512(src + 4 * begin + kLine * k), 1));
        transpose(v);
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p) _mm512_storeu_si512(planes[p] + begin, v[p]);
      }
    }
    PlainOps::split<Word>(src, begin, n, planes);
  }

  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, std::byte* dst) {
    if constexpr (sizeof(Word) == 4) {
      const __m512i by_element = _mm512_load_si512(kByElement.data());
      for (; begin + kStep <= n; begin += kStep) {
        __m512i v[4];
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p) v[p] = _mm512_loadu_si512(planes[p] + begin);
        transpose(v);
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k)
          _mm512_storeu_si512(dst + 4 * begin + kLine * k,
                              _mm512_ror_epi32(_mm512_permutexvar_epi8(by_element, v[k]), 1));
      }
    }
    PlainOps::join<Word>(planes, begin, n, dst);
  }

 private:
  static void transpose(__m512i (&v)[4]) {  // of quarters
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    const __m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, b, 0xDD);
    v[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(c, d, 0xDD);
  }
};

}  // namespace

extern const Kernel planes_avx512;
const Kernel planes_avx512 = Planes<Avx512Ops>::kernel("avx512", has_avx512);

}  // namespace wirepress
