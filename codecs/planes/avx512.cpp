// SPDX-License-Identifier: Apache-2.0
// 64 elements, 64 values of a list, 64 bits of a node at a time. Compress and expand are used
// between registers only: into memory they are slow on Zen 4.
#include "codecs/common/simd/avx512.hpp"

#include "codecs/planes/planes.hpp"

namespace wirepress {
namespace {
namespace planes {

using Table = std::array<uint8_t, 64>;
// Of a matrix of 64 bytes in `rows` columns, the bytes column by column.
constexpr Table columns(size_t rows) {
  Table t{};
  for (size_t i = 0; i < 64; ++i)
    t[i] = static_cast<uint8_t>(i % (64 / rows) * rows + i / (64 / rows));
  return t;
}
// Every second byte of two registers, from `first` on; and one register's and the other's by turns.
constexpr Table every_second(size_t first) {
  Table t{};
  for (size_t i = 0; i < 64; ++i) t[i] = static_cast<uint8_t>(2 * i + first);
  return t;
}
constexpr Table by_turns(size_t first) {
  Table t{};
  for (size_t i = 0; i < 64; ++i) t[i] = static_cast<uint8_t>(first + i / 2 + i % 2 * 64);
  return t;
}
// The byte before a lane of 16 that lies `lanes` lower, everywhere in the lane.
constexpr Table last_of_lane(size_t lanes) {
  Table t{};
  for (size_t i = 0; i < 64; ++i) t[i] = static_cast<uint8_t>((i / 16 + 4 - lanes) % 4 * 16 + 15);
  return t;
}
constexpr Table reversed_words() {
  Table t{};
  for (size_t i = 0; i < 64; ++i) t[i] = static_cast<uint8_t>(i / 8 * 8 + 7 - i % 8);
  return t;
}
alignas(64) constexpr Table kByByte4 = columns(4);
alignas(64) constexpr Table kByElement4 = columns(16);
alignas(64) constexpr Table kByByte8 = columns(8);
alignas(64) constexpr Table kLowBytes = every_second(0);
alignas(64) constexpr Table kHighBytes = every_second(1);
alignas(64) constexpr Table kFirstTurns = by_turns(0);
alignas(64) constexpr Table kSecondTurns = by_turns(32);
alignas(64) constexpr std::array<Table, 3> kLaneEnds = {last_of_lane(1), last_of_lane(2),
                                                        last_of_lane(3)};
alignas(64) constexpr Table kReversed = reversed_words();

struct Avx512Ops : PlainOps {
  static constexpr size_t kStep = 64;

  static bool line_is_zero(const std::byte* line) {
    const __m512i v = load(line);
    return _mm512_test_epi32_mask(v, v) == 0;
  }

  template <typename Word>
  static void mark(const std::byte* src, size_t begin, size_t n, std::byte* bits) {
    for (; begin + kStep <= n; begin += kStep) {
      uint64_t marks = 0;
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) {
        const __m512i v = load(src + sizeof(Word) * begin + kLine * k);
        marks |= not_zero<Word>(v) << k * kLine / sizeof(Word);
      }
      std::memcpy(bits + begin / 8, &marks, sizeof(marks));
    }
    PlainOps::mark<Word>(src, begin, n, bits);
  }
  template <typename Word>
  static void keep(const std::byte* src, const std::byte* bits, size_t begin, size_t n,
                   std::byte* out) {
    constexpr size_t kWords = kLine / sizeof(Word);
    for (; begin + kWords <= n; begin += kWords) {
      const uint64_t mask = word(bits + begin / 8, kWords / 8);
      const __m512i v = load(src + sizeof(Word) * begin);
      if constexpr (sizeof(Word) == 2)
        store(out, _mm512_maskz_compress_epi16(static_cast<__mmask32>(mask), v));
      if constexpr (sizeof(Word) == 4)
        store(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), v));
      if constexpr (sizeof(Word) == 8)
        store(out, _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), v));
      out += sizeof(Word) * static_cast<size_t>(std::popcount(mask));
    }
    PlainOps::keep<Word>(src, bits, begin, n, out);
  }
  template <typename Word>
  static void spread(const std::byte* from, const std::byte* bits, size_t begin, size_t n,
                     std::byte* dst) {
    constexpr size_t kWords = kLine / sizeof(Word);
    for (; begin + kWords <= n; begin += kWords) {
      const uint64_t mask = word(bits + begin / 8, kWords / 8);
      std::byte* const to = dst + sizeof(Word) * begin;
      if constexpr (sizeof(Word) == 2)
        store(to, _mm512_maskz_expand_epi16(static_cast<__mmask32>(mask), load(from)));
      if constexpr (sizeof(Word) == 4)
        store(to, _mm512_maskz_expand_epi32(static_cast<__mmask16>(mask), load(from)));
      if constexpr (sizeof(Word) == 8)
        store(to, _mm512_maskz_expand_epi64(static_cast<__mmask8>(mask), load(from)));
      from += sizeof(Word) * static_cast<size_t>(std::popcount(mask));
    }
    PlainOps::spread<Word>(from, bits, begin, n, dst);
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, uint64_t base,
                    std::byte* const* planes) {
    for (; begin + kStep <= n; begin += kStep) {
      __m512i v[sizeof(Word)];
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) v[k] = load(src + sizeof(Word) * begin + kLine * k);
      if constexpr (sizeof(Word) == 2) split2(v);
      if constexpr (sizeof(Word) == 4) split4(v);
      if constexpr (sizeof(Word) == 8) split8(v, base);
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p) store(planes[p] + begin, v[p]);
    }
    PlainOps::split<Word>(src, begin, n, base, planes);
  }

  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, uint64_t base,
                   std::byte* dst) {
    for (; begin + kStep <= n; begin += kStep) {
      __m512i v[sizeof(Word)];
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p) v[p] = load(planes[p] + begin);
      if constexpr (sizeof(Word) == 2) join2(v);
      if constexpr (sizeof(Word) == 4) join4(v);
      if constexpr (sizeof(Word) == 8) join8(v, base);
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) store(dst + sizeof(Word) * begin + kLine * k, v[k]);
    }
    PlainOps::join<Word>(planes, begin, n, base, dst);
  }

  static void translate(const std::byte* values, size_t n, const uint8_t* table, uint8_t /*usual*/,
                        std::byte* out) {
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
    const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    for (size_t i = 0; i < n; i += kStep) {
      const __m512i v = load(values + i);
      const __m512i low = _mm512_permutex2var_epi8(a, v, b);
      const __m512i high = _mm512_permutex2var_epi8(c, v, d);
      store(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
    }
  }

  static std::byte* pick(const std::byte* leaves, const std::byte* values, size_t n, uint8_t leaf,
                         std::byte* out) {
    const __m512i wanted = _mm512_set1_epi8(static_cast<char>(leaf));
    for (size_t i = 0; i < n; i += kStep) {
      uint64_t found = _mm512_cmpeq_epi8_mask(load(leaves + i), wanted);
      if (n - i < kStep) found &= (uint64_t{1} << (n - i)) - 1;
      if (found == 0) continue;
      store(out, _mm512_maskz_compress_epi8(found, load(values + i)));
      out += std::popcount(found);
    }
    return out;
  }

  template <bool kLeft, bool kRight>
  static size_t divide(const std::byte* list, size_t n, uint8_t split, std::byte* bits,
                       std::byte* left, std::byte* right) {
    const __m512i limit = _mm512_set1_epi8(static_cast<char>(split));
    size_t ones = 0;
    for (size_t i = 0; i < n; i += kStep) {
      const __m512i v = load(list + i);
      uint64_t above = _mm512_cmpge_epu8_mask(v, limit);
      if (n - i < kStep) above &= (uint64_t{1} << (n - i)) - 1;
      std::memcpy(bits + i / 8, &above, sizeof(above));
      if (kLeft) store(left + i - ones, _mm512_maskz_compress_epi8(~above, v));
      if (kRight) store(right + ones, _mm512_maskz_compress_epi8(above, v));
      ones += static_cast<size_t>(std::popcount(above));
    }
    return ones;
  }

  template <bool kLeft, bool kRight>
  static void merge(const std::byte* bits, size_t n, const std::byte* left, const std::byte* right,
                    std::byte a, std::byte b, std::byte* out) {
    const __m512i all_left = _mm512_set1_epi8(static_cast<char>(a));
    const __m512i all_right = _mm512_set1_epi8(static_cast<char>(b));
    for (size_t i = 0; i < n; i += kStep) {
      const uint64_t mask =
          n - i >= kStep ? word(bits + i / 8, 8) : word(bits + i / 8, (n - i + 7) / 8);
      __m512i v = all_left;
      if (kLeft) v = _mm512_maskz_expand_epi8(~mask, load(left));
      v = kRight ? _mm512_mask_expand_epi8(v, mask, load(right))
                 : _mm512_mask_mov_epi8(v, mask, all_right);
      store(out + i, v);
      const auto ones = static_cast<size_t>(std::popcount(mask));
      if (kLeft) left += kStep - ones;
      if (kRight) right += ones;
    }
  }

  static void sums(std::byte* values, size_t n) {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(128));
    __m512i before = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += kStep) {
      __m512i v = _mm512_add_epi8(load(values + i), offset);
      v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 1));
      v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 2));
      v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 4));
      v = _mm512_add_epi8(v, _mm512_bslli_epi128(v, 8));
      const __m512i one = ends<0>(v, ~uint64_t{0} << 16), two = ends<1>(v, ~uint64_t{0} << 32);
      const __m512i three = ends<2>(v, ~uint64_t{0} << 48);
      v = _mm512_add_epi8(_mm512_add_epi8(v, one), _mm512_add_epi8(two, three));
      v = _mm512_add_epi8(v, before);
      before = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), v);
      store(values + i, v);
    }
  }

  static void take_bits(const std::byte* values, size_t n, uint8_t mask, std::byte* out) {
    const uint64_t kept = uint64_t{0x0101010101010101} * mask;
    const auto width = static_cast<size_t>(std::popcount(kept));
    for (size_t i = 0; i < n; i += kStep) {
      __m512i v = load(values + i);
      if (n - i < kStep) v = _mm512_maskz_mov_epi8((uint64_t{1} << (n - i)) - 1, v);
      store(out, _mm512_maskz_compress_epi8(kept, transpose(v)));
      out += width;
    }
  }
  template <bool kOver>
  static void put_bits(const std::byte* bits, size_t n, uint8_t mask, std::byte* values) {
    const uint64_t kept = uint64_t{0x0101010101010101} * mask;
    const auto width = static_cast<size_t>(std::popcount(kept));
    const __m512i others = _mm512_set1_epi8(static_cast<char>(~mask));
    uint64_t present = ~uint64_t{0} >> (64 - width);
    for (size_t i = 0; i < n; i += kStep, bits += width) {
      if (n - i < kStep) present = ~uint64_t{0} >> (64 - (n - i + 7) / 8 * width / 8);
      __m512i v = transpose(_mm512_maskz_expand_epi8(kept, _mm512_maskz_loadu_epi8(present, bits)));
      if (kOver) v = _mm512_or_si512(v, _mm512_and_si512(load(values + i), others));
      store(values + i, v);
    }
  }

 private:
  static __m512i load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, __m512i v) { _mm512_storeu_si512(to, v); }
  static uint64_t word(const std::byte* from, size_t size) {
    uint64_t w = 0;
    std::memcpy(&w, from, size);
    return w;
  }
  template <typename Word>
  static uint64_t not_zero(__m512i v) {
    if constexpr (sizeof(Word) == 2) return _mm512_test_epi16_mask(v, v);
    if constexpr (sizeof(Word) == 4) return _mm512_test_epi32_mask(v, v);
    if constexpr (sizeof(Word) == 8) return _mm512_test_epi64_mask(v, v);
  }
  template <size_t kLanes>
  static __m512i ends(__m512i v, uint64_t where) {
    return _mm512_maskz_permutexvar_epi8(where, _mm512_load_si512(kLaneEnds[kLanes].data()), v);
  }
  // Of eight squares of 8 x 8 bits: a product of a unit matrix with each.
  static __m512i transpose(__m512i v) {
    const __m512i unit = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201));
    const __m512i turned = _mm512_permutexvar_epi8(_mm512_load_si512(kReversed.data()), v);
    return _mm512_gf2p8affine_epi64_epi8(unit, turned, 0);
  }

  static void split2(__m512i (&v)[2]) {
    const __m512i a = _mm512_shldi_epi16(v[0], v[0], 1), b = _mm512_shldi_epi16(v[1], v[1], 1);
    v[0] = _mm512_permutex2var_epi8(a, _mm512_load_si512(kLowBytes.data()), b);
    v[1] = _mm512_permutex2var_epi8(a, _mm512_load_si512(kHighBytes.data()), b);
  }
  static void join2(__m512i (&v)[2]) {
    const __m512i a = _mm512_permutex2var_epi8(v[0], _mm512_load_si512(kFirstTurns.data()), v[1]);
    const __m512i b = _mm512_permutex2var_epi8(v[0], _mm512_load_si512(kSecondTurns.data()), v[1]);
    v[0] = _mm512_shrdi_epi16(a, a, 1);
    v[1] = _mm512_shrdi_epi16(b, b, 1);
  }

  // A register's 16 elements are sorted by bytes, and quarters of four registers change places.
  static void split4(__m512i (&v)[4]) {
    const __m512i by_byte = _mm512_load_si512(kByByte4.data());
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k)
      v[k] = _mm512_permutexvar_epi8(by_byte, _mm512_rol_epi32(v[k], 1));
    change_quarters(v);
  }
  static void join4(__m512i (&v)[4]) {
    const __m512i by_element = _mm512_load_si512(kByElement4.data());
    change_quarters(v);
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k)
      v[k] = _mm512_ror_epi32(_mm512_permutexvar_epi8(by_element, v[k]), 1);
  }
  static void change_quarters(__m512i (&v)[4]) {
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    const __m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[1] = _mm512_shuffle_i32x4(a, b, 0xDD);
    v[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[3] = _mm512_shuffle_i32x4(c, d, 0xDD);
  }

  // A register's 8 elements are sorted by bytes, and eighths of eight registers change places. The
  // table of 8 x 8 bytes is its own inverse.
  static void split8(__m512i (&v)[8], uint64_t base) {
    const __m512i by_byte = _mm512_load_si512(kByByte8.data());
    const __m512i exponent = _mm512_set1_epi64(static_cast<int64_t>(kExponent64));
    const __m512i off = _mm512_set1_epi64(static_cast<int64_t>(base));
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      const __mmask8 some = _mm512_test_epi64_mask(v[k], exponent);
      v[k] = _mm512_rol_epi64(_mm512_mask_sub_epi64(v[k], some, v[k], off), 4);
      v[k] = _mm512_permutexvar_epi8(by_byte, v[k]);
    }
    change_eighths(v);
  }
  static void join8(__m512i (&v)[8], uint64_t base) {
    const __m512i by_byte = _mm512_load_si512(kByByte8.data());
    const __m512i exponent = _mm512_set1_epi64(static_cast<int64_t>(kExponent64));
    const __m512i off = _mm512_set1_epi64(static_cast<int64_t>(base));
    change_eighths(v);
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      v[k] = _mm512_ror_epi64(_mm512_permutexvar_epi8(by_byte, v[k]), 4);
      const __mmask8 some = _mm512_test_epi64_mask(v[k], exponent);
      v[k] = _mm512_mask_add_epi64(v[k], some, v[k], off);
    }
  }
  static void change_eighths(__m512i (&v)[8]) {
    __m512i a[8];
#pragma GCC unroll 4
    for (size_t k = 0; k < 8; k += 2) {
      a[k] = _mm512_unpacklo_epi64(v[k], v[k + 1]);
      a[k + 1] = _mm512_unpackhi_epi64(v[k], v[k + 1]);
    }
    // a[2 j + h] has, of registers 2 j and 2 j + 1, the eighths h, h + 2, h + 4, h + 6 in pairs.
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h) {
      __m512i q[4] = {a[h], a[2 + h], a[4 + h], a[6 + h]};
      change_quarters(q);
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) v[2 * k + h] = q[k];
    }
  }
};

}  // namespace planes
}  // namespace

extern const Kernel planes_avx512;
const Kernel planes_avx512 = planes::kernel<planes::Avx512Ops>("avx512", has_avx512);

}  // namespace wirepress
