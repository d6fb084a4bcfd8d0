// SPDX-License-Identifier: Apache-2.0
// Lists by shuffles of eight values (shuffle8.hpp); elements by unpacks, which work within halves
// of a register: it holds elements k and k + 16 of 32 there.
#include <immintrin.h>

#include "codecs/planes/planes.hpp"
#include "codecs/planes/shuffle8.hpp"

namespace wirepress {
namespace {
namespace planes {

struct Avx2Eight {
  static constexpr size_t kValues = 32;
  using Limit = __m256i;
  static Limit limit(uint8_t split) { return _mm256_set1_epi8(static_cast<char>(split)); }
  static uint32_t above(const std::byte* list, Limit limit) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(list));
    return static_cast<uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(v, limit), v)));
  }
  static bool any_is(const std::byte* list, Limit value) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(list));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(v, value)) != 0;
  }
  static uint64_t sort(const std::byte* list, const uint8_t* shuffle) {
    const __m128i sorted = _mm_shuffle_epi8(load(list), load(shuffle));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(sorted));
  }
  // 32 values: b where the bit is 1, else a.
  static void blend(uint64_t bits, std::byte a, std::byte b, std::byte* out) {
    const __m256i v = _mm256_blendv_epi8(_mm256_set1_epi8(static_cast<char>(a)),
                                         _mm256_set1_epi8(static_cast<char>(b)), spread(bits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), v);
  }
  // 32 bits as bytes of ones or zeros.
  static __m256i spread(uint64_t bits) {
    const __m256i byte_of =
        _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m256i place = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    const __m256i each = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of);
    return _mm256_cmpeq_epi8(_mm256_and_si256(each, place), place);
  }
  static void merge(const std::byte* left, const std::byte* right, const uint8_t* shuffle,
                    std::byte* out) {
    const __m128i both = _mm_unpacklo_epi64(load(left), load(right));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(both, load(shuffle)));
  }

 private:
  static __m128i load(const void* from) {
    return _mm_loadl_epi64(static_cast<const __m128i*>(from));
  }
};

struct Avx2Ops : ShuffleOps<Avx2Eight> {
  static constexpr size_t kStep = 32;

  static bool line_is_zero(const std::byte* line) {
    const __m256i v = _mm256_or_si256(load(line), load(line + 32));
    return _mm256_testz_si256(v, v) != 0;
  }

  template <typename Word>
  static void mark(const std::byte* src, size_t begin, size_t n, std::byte* bits) {
    constexpr size_t kWords = 32 / sizeof(Word);
    for (; begin + kStep <= n; begin += kStep) {
      uint32_t marks = 0;
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k)
        marks |= zeros<Word>(load(src + sizeof(Word) * begin + 32 * k)) << kWords * k;
      marks = ~marks;
      std::memcpy(bits + begin / 8, &marks, sizeof(marks));
    }
    PlainOps::mark<Word>(src, begin, n, bits);
  }
  // Eight elements of two or four bytes; those of eight bytes go one by one.
  template <typename Word>
  static void keep(const std::byte* src, const std::byte* bits, size_t begin, size_t n,
                   std::byte* out) {
    if constexpr (sizeof(Word) < 8) {
      for (; begin + 8 <= n; begin += 8) {
        const auto byte = static_cast<uint8_t>(bits[begin / 8]);
        const __m128i places = places_of(kDividing[static_cast<uint8_t>(~byte)]);
        if constexpr (sizeof(Word) == 2) {
          const __m128i v = _mm_loadu_si128(half(src + 2 * begin));
          _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(v, pairs(places)));
        } else {
          const __m256i v = load(src + 4 * begin);
          store(out, _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(places)));
        }
        out += sizeof(Word) * static_cast<size_t>(std::popcount(byte));
      }
    }
    PlainOps::keep<Word>(src, bits, begin, n, out);
  }
  template <typename Word>
  static void spread(const std::byte* from, const std::byte* bits, size_t begin, size_t n,
                     std::byte* dst) {
    if constexpr (sizeof(Word) < 8) {
      for (; begin + 8 <= n; begin += 8) {
        const auto byte = static_cast<uint8_t>(bits[begin / 8]);
        const __m128i places = places_of(kMerging[byte]);  // 8 and more where the bit is 1
        if constexpr (sizeof(Word) == 2) {
          const __m128i v = _mm_loadu_si128(half(from)), wide = _mm_cvtepu8_epi16(places);
          const __m128i some = _mm_cmpgt_epi16(wide, _mm_set1_epi16(7));
          _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 2 * begin),
                           _mm_and_si128(some, _mm_shuffle_epi8(v, pairs(places))));
        } else {
          const __m256i wide = _mm256_cvtepu8_epi32(places);
          const __m256i some = _mm256_cmpgt_epi32(wide, _mm256_set1_epi32(7));
          store(dst + 4 * begin,
                _mm256_and_si256(some, _mm256_permutevar8x32_epi32(load(from), wide)));
        }
        from += sizeof(Word) * static_cast<size_t>(std::popcount(byte));
      }
    }
    PlainOps::spread<Word>(from, bits, begin, n, dst);
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, uint64_t base,
                    std::byte* const* planes) {
    for (; begin + kStep <= n; begin += kStep) {
      __m256i v[sizeof(Word)];
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) {
        const std::byte* const from = src + sizeof(Word) * begin + 16 * k;
        v[k] = _mm256_loadu2_m128i(half(from + 16 * sizeof(Word)), half(from));
      }
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
                   bool past_caches, std::byte* dst) {
    if (past_caches) return join_all<Word, true>(planes, begin, n, base, dst);
    join_all<Word, false>(planes, begin, n, base, dst);
  }
  static void settle() { _mm_sfence(); }

  template <typename Word, bool kPastCaches>
  static void join_all(const std::byte* const* planes, size_t begin, size_t n, uint64_t base,
                       std::byte* dst) {
    for (; begin + kStep <= n; begin += kStep) {
      __m256i v[sizeof(Word)];
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p) v[p] = load(planes[p] + begin);
      if constexpr (sizeof(Word) == 2) join2(v);
      if constexpr (sizeof(Word) == 4) join4(v);
      if constexpr (sizeof(Word) == 8) join8(v, base);
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) {
        std::byte* const to = dst + sizeof(Word) * begin + 16 * k;
        auto* const low = reinterpret_cast<__m128i*>(to);
        auto* const high = reinterpret_cast<__m128i*>(to + 16 * sizeof(Word));
        if (kPastCaches) {
          _mm_stream_si128(low, _mm256_castsi256_si128(v[k]));
          _mm_stream_si128(high, _mm256_extracti128_si256(v[k], 1));
        } else {
          _mm256_storeu2_m128i(high, low, v[k]);
        }
      }
    }
    PlainOps::join<Word>(planes, begin, n, base, false, dst);
  }

  static void sums(std::byte* values, size_t n) {
    const __m128i offset = _mm_set1_epi8(static_cast<char>(128));
    __m128i before = _mm_setzero_si128();
    for (size_t i = 0; i < n; i += 16) {
      __m128i* const at = reinterpret_cast<__m128i*>(values + i);
      __m128i v = _mm_add_epi8(_mm_loadu_si128(at), offset);
      v = _mm_add_epi8(v, _mm_slli_si128(v, 1));
      v = _mm_add_epi8(v, _mm_slli_si128(v, 2));
      v = _mm_add_epi8(v, _mm_slli_si128(v, 4));
      v = _mm_add_epi8(v, _mm_slli_si128(v, 8));
      v = _mm_add_epi8(v, before);
      before = _mm_shuffle_epi8(v, _mm_set1_epi8(15));
      _mm_storeu_si128(at, v);
    }
  }

  // By shuffles of those 16 entries, of the 16 times 16, that are not all the usual one.
  static void translate(const std::byte* values, size_t n, const uint8_t* table, uint8_t usual,
                        std::byte* out) {
    const __m128i usual16 = _mm_set1_epi8(static_cast<char>(usual));
    __m256i entries[16], begins[16];  // as differences from the usual one
    size_t n_parts = 0;
    for (size_t first = 0; first < 256; first += 16) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + first));
      const __m128i other = _mm_xor_si128(part, usual16);
      if (_mm_testz_si128(other, other) != 0) continue;
      entries[n_parts] = _mm256_broadcastsi128_si256(other);
      begins[n_parts++] = _mm256_set1_epi8(static_cast<char>(first));
    }
    const __m256i all_usual = _mm256_broadcastsi128_si256(usual16);
    const __m256i above = _mm256_set1_epi8(0x70);  // makes a place of 16 or more one of 128 or more
    for (size_t i = 0; i < n; i += kStep) {
      const __m256i v = load(values + i);
      __m256i found = all_usual;
      for (size_t k = 0; k < n_parts; ++k) {
        const __m256i place = _mm256_adds_epu8(_mm256_sub_epi8(v, begins[k]), above);
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(entries[k], place));
      }
      store(out + i, found);
    }
  }

  static void take_bits(const std::byte* values, size_t n, uint8_t mask, std::byte* out) {
    if (!std::has_single_bit(mask)) return take_bits_by<Bmi2Bytes>(values, n, mask, out);
    const __m128i up = _mm_cvtsi32_si128(7 - std::countr_zero(mask));
    for (size_t i = 0; i < n; i += kStep) {
      auto bits =
          static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(load(values + i), up)));
      if (n - i < kStep) bits &= (1u << (n - i)) - 1;
      std::memcpy(out + i / 8, &bits, sizeof(bits));
    }
  }
  template <bool kOver>
  static void put_bits(const std::byte* bits, size_t n, uint8_t mask, std::byte* values) {
    if (!std::has_single_bit(mask)) return put_bits_by<Bmi2Bytes, kOver>(bits, n, mask, values);
    const __m256i one = _mm256_set1_epi8(static_cast<char>(mask));
    for (size_t i = 0; i < n; i += kStep) {
      const uint64_t word = n - i >= kStep ? PlainOps::load(bits + i / 8, kStep / 8)
                                           : PlainOps::load(bits + i / 8, (n - i + 7) / 8);
      __m256i v = _mm256_and_si256(Avx2Eight::spread(word), one);
      if (kOver) v = _mm256_or_si256(v, _mm256_andnot_si256(one, load(values + i)));
      store(values + i, v);
    }
  }

 private:
  struct Bmi2Bytes {
    static uint64_t squeeze(uint64_t word, uint8_t mask) { return _pext_u64(word, bytes(mask)); }
    static uint64_t spread(uint64_t close, uint8_t mask) { return _pdep_u64(close, bytes(mask)); }
    static uint64_t bytes(uint8_t mask) { return _pdep_u64(mask, 0x0101010101010101) * 255; }
  };

  template <typename Word>
  static uint32_t zeros(__m256i v) {
    const __m256i none = _mm256_setzero_si256();
    if constexpr (sizeof(Word) == 2) {
      const __m256i is = _mm256_cmpeq_epi16(v, none);
      const __m128i both =
          _mm_packs_epi16(_mm256_castsi256_si128(is), _mm256_extracti128_si256(is, 1));
      return static_cast<uint32_t>(_mm_movemask_epi8(both));
    }
    if constexpr (sizeof(Word) == 4)
      return static_cast<uint32_t>(
          _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, none))));
    if constexpr (sizeof(Word) == 8)
      return static_cast<uint32_t>(
          _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(v, none))));
  }
  static __m128i places_of(const std::array<uint8_t, 8>& places) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(places.data()));
  }
  // The places of both bytes of elements, from those of elements.
  static __m128i pairs(__m128i places) {
    const __m128i wide = _mm_cvtepu8_epi16(places);
    return _mm_add_epi16(_mm_mullo_epi16(wide, _mm_set1_epi16(0x0202)), _mm_set1_epi16(0x0100));
  }

  static const __m128i* half(const std::byte* p) { return reinterpret_cast<const __m128i*>(p); }
  static __m256i load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static void store(std::byte* to, __m256i v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
  }

  static void split2(__m256i (&v)[2]) {
    const __m256i group = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
#pragma GCC unroll 2
    for (__m256i& x : v) {
      x = _mm256_or_si256(_mm256_slli_epi16(x, 1), _mm256_srli_epi16(x, 15));
      x = _mm256_shuffle_epi8(x, group);
    }
    const __m256i low = _mm256_unpacklo_epi64(v[0], v[1]);
    v[1] = _mm256_unpackhi_epi64(v[0], v[1]);
    v[0] = low;
  }
  static void join2(__m256i (&v)[2]) {
    const __m256i low = _mm256_unpacklo_epi8(v[0], v[1]);
    v[1] = _mm256_unpackhi_epi8(v[0], v[1]);
    v[0] = low;
#pragma GCC unroll 2
    for (__m256i& x : v) x = _mm256_or_si256(_mm256_srli_epi16(x, 1), _mm256_slli_epi16(x, 15));
  }

  static void split4(__m256i (&v)[4]) {
    const __m256i group = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
#pragma GCC unroll 4
    for (__m256i& x : v) {
      x = _mm256_or_si256(_mm256_slli_epi32(x, 1), _mm256_srli_epi32(x, 31));
      x = _mm256_shuffle_epi8(x, group);
    }
    const __m256i low0 = _mm256_unpacklo_epi32(v[0], v[1]);
    const __m256i low1 = _mm256_unpacklo_epi32(v[2], v[3]);
    const __m256i high0 = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i high1 = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(low0, low1);
    v[1] = _mm256_unpackhi_epi64(low0, low1);
    v[2] = _mm256_unpacklo_epi64(high0, high1);
    v[3] = _mm256_unpackhi_epi64(high0, high1);
  }
  static void join4(__m256i (&v)[4]) {
    const __m256i low01 = _mm256_unpacklo_epi8(v[0], v[1]);
    const __m256i high01 = _mm256_unpackhi_epi8(v[0], v[1]);
    const __m256i low23 = _mm256_unpacklo_epi8(v[2], v[3]);
    const __m256i high23 = _mm256_unpackhi_epi8(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi16(low01, low23);
    v[1] = _mm256_unpackhi_epi16(low01, low23);
    v[2] = _mm256_unpacklo_epi16(high01, high23);
    v[3] = _mm256_unpackhi_epi16(high01, high23);
#pragma GCC unroll 4
    for (__m256i& x : v) x = _mm256_or_si256(_mm256_srli_epi32(x, 1), _mm256_slli_epi32(x, 31));
  }

  static __m256i some_exponent(__m256i v, __m256i base) {  // base where it is not 0
    const __m256i exponent = _mm256_set1_epi64x(static_cast<int64_t>(kExponent64));
    const __m256i none = _mm256_cmpeq_epi64(_mm256_and_si256(v, exponent), _mm256_setzero_si256());
    return _mm256_andnot_si256(none, base);
  }
  // Pairs of elements are sorted by bytes, then pairs of bytes, then fours, then eights meet.
  static void split8(__m256i (&v)[8], uint64_t base) {
    const __m256i off = _mm256_set1_epi64x(static_cast<int64_t>(base));
    const __m256i group = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
#pragma GCC unroll 8
    for (__m256i& x : v) {
      x = _mm256_sub_epi64(x, some_exponent(x, off));
      x = _mm256_or_si256(_mm256_slli_epi64(x, 4), _mm256_srli_epi64(x, 60));
      x = _mm256_shuffle_epi8(x, group);
    }
    __m256i a[8];
#pragma GCC unroll 4
    for (size_t k = 0; k < 8; k += 2) {  // bytes 0-3 and 4-7 of four elements
      a[k] = _mm256_unpacklo_epi16(v[k], v[k + 1]);
      a[k + 1] = _mm256_unpackhi_epi16(v[k], v[k + 1]);
    }
    __m256i b[8];
#pragma GCC unroll 2
    for (size_t k = 0; k < 8; k += 4) {  // bytes 2 j and 2 j + 1 of eight elements
#pragma GCC unroll 2
      for (size_t h = 0; h < 2; ++h) {
        b[k + 2 * h] = _mm256_unpacklo_epi32(a[k + h], a[k + h + 2]);
        b[k + 2 * h + 1] = _mm256_unpackhi_epi32(a[k + h], a[k + h + 2]);
      }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
      v[2 * k] = _mm256_unpacklo_epi64(b[k], b[k + 4]);
      v[2 * k + 1] = _mm256_unpackhi_epi64(b[k], b[k + 4]);
    }
  }
  static void join8(__m256i (&v)[8], uint64_t base) {
    const __m256i off = _mm256_set1_epi64x(static_cast<int64_t>(base));
    __m256i a[8];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {  // bytes 2 k and 2 k + 1 of elements 0-7 and 8-15
      a[k] = _mm256_unpacklo_epi8(v[2 * k], v[2 * k + 1]);
      a[k + 4] = _mm256_unpackhi_epi8(v[2 * k], v[2 * k + 1]);
    }
#pragma GCC unroll 2
    for (size_t g = 0; g < 2; ++g) {  // of eight elements
      const __m256i* const e = a + 4 * g;
      const __m256i low0 = _mm256_unpacklo_epi16(e[0], e[1]);
      const __m256i high0 = _mm256_unpackhi_epi16(e[0], e[1]);
      const __m256i low1 = _mm256_unpacklo_epi16(e[2], e[3]);
      const __m256i high1 = _mm256_unpackhi_epi16(e[2], e[3]);
      v[4 * g] = _mm256_unpacklo_epi32(low0, low1);
      v[4 * g + 1] = _mm256_unpackhi_epi32(low0, low1);
      v[4 * g + 2] = _mm256_unpacklo_epi32(high0, high1);
      v[4 * g + 3] = _mm256_unpackhi_epi32(high0, high1);
    }
#pragma GCC unroll 8
    for (__m256i& x : v) {
      x = _mm256_or_si256(_mm256_srli_epi64(x, 4), _mm256_slli_epi64(x, 60));
      x = _mm256_add_epi64(x, some_exponent(x, off));
    }
  }
};

}  // namespace planes
}  // namespace

extern const Kernel planes_avx2;
const Kernel planes_avx2 = planes::kernel<planes::Avx2Ops>("avx2", has_avx2);

}  // namespace wirepress
