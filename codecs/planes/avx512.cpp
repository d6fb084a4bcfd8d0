// SPDX-License-Identifier: Apache-2.0
// 64 elements, 64 values of a list, 64 bits of a node at a time. Compress and expand are used
// between registers only: into memory they are slow on Zen 4.
#include "codecs/common/simd/avx512.hpp"

#include "codecs/planes/planes.hpp"

namespace wirepress {
namespace {
namespace planes {

using Table = std::array<uint8_t, 64>;
// Of two registers, places of every second lane from `first` on; and of one's and the other's lanes
// by turns. Both for lanes of 8, 16 and 32 bits.
template <typename Lane>
using Lanes = std::array<Lane, 64 / sizeof(Lane)>;
template <typename Lane>
constexpr Lanes<Lane> every_second(size_t first) {
  Lanes<Lane> t{};
  for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<Lane>(2 * i + first);
  return t;
}
template <typename Lane>
constexpr Lanes<Lane> by_turns(size_t half) {
  Lanes<Lane> t{};
  for (size_t i = 0; i < t.size(); ++i)
    t[i] = static_cast<Lane>(half * t.size() / 2 + i / 2 + i % 2 * t.size());
  return t;
}
template <typename Lane>
struct Pairs {
  alignas(64) Lanes<Lane> even = every_second<Lane>(0), odd = every_second<Lane>(1);
  alignas(64) Lanes<Lane> first = by_turns<Lane>(0), second = by_turns<Lane>(1);
};
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
constexpr Pairs<uint8_t> kBytePairs;
constexpr Pairs<uint16_t> kWordPairs;
constexpr Pairs<uint32_t> kDoublePairs;
alignas(64) constexpr std::array<Table, 3> kLaneEnds = {last_of_lane(1), last_of_lane(2),
                                                        last_of_lane(3)};
alignas(64) constexpr Table kReversed = reversed_words();
alignas(64) constexpr Table kPlaces = [] {
  Table t{};
  for (size_t i = 0; i < 64; ++i) t[i] = static_cast<uint8_t>(i);
  return t;
}();

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
                   bool past_caches, std::byte* dst) {
    if (past_caches) return join_all<Word, true>(planes, begin, n, base, dst);
    join_all<Word, false>(planes, begin, n, base, dst);
  }
  static void settle() { _mm_sfence(); }

  template <typename Word, bool kPastCaches>
  static void join_all(const std::byte* const* planes, size_t begin, size_t n, uint64_t base,
                       std::byte* dst) {
    for (; begin + kStep <= n; begin += kStep) {
      __m512i v[sizeof(Word)];
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p) v[p] = load(planes[p] + begin);
      if constexpr (sizeof(Word) == 2) join2(v);
      if constexpr (sizeof(Word) == 4) join4(v);
      if constexpr (sizeof(Word) == 8) join8(v, base);
#pragma GCC unroll 8
      for (size_t k = 0; k < sizeof(Word); ++k) {
        std::byte* const to = dst + sizeof(Word) * begin + kLine * k;
        if (kPastCaches)
          _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v[k]);
        else
          store(to, v[k]);
      }
    }
    PlainOps::join<Word>(planes, begin, n, base, false, dst);
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
    const auto take = [&](uint64_t found, size_t i) {
      store(out, _mm512_maskz_compress_epi8(found, load(values + i)));
      out += std::popcount(found);
    };
    size_t i = 0;
    for (; i + 4 * kStep <= n; i += 4 * kStep) {  // mostly none is there
      uint64_t found[4];
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k)
        found[k] = _mm512_cmpeq_epi8_mask(load(leaves + i + kStep * k), wanted);
      if ((found[0] | found[1] | found[2] | found[3]) == 0) [[likely]]
        continue;
      for (size_t k = 0; k < 4; ++k) take(found[k], i + kStep * k);
    }
    for (; i < n; i += kStep) {
      const uint64_t found = _mm512_cmpeq_epi8_mask(load(leaves + i), wanted);
      take(n - i < kStep ? found & ((uint64_t{1} << (n - i)) - 1) : found, i);
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
          n - i >= kStep ? word(bits + i / 8, 8) : last_word(bits + i / 8, (n - i + 7) / 8);
      // Both expanded into zeros: into what is there already takes twice the time on Zen 4.
      __m512i v;
      if (kLeft && kRight)
        v = _mm512_or_si512(_mm512_maskz_expand_epi8(~mask, load(left)),
                            _mm512_maskz_expand_epi8(mask, load(right)));
      else if (kLeft)
        v = _mm512_mask_expand_epi8(all_right, ~mask, load(left));
      else if (kRight)
        v = _mm512_mask_expand_epi8(all_left, mask, load(right));
      else
        v = _mm512_mask_mov_epi8(all_left, mask, all_right);
      store(out + i, v);
      const auto ones = static_cast<size_t>(std::popcount(mask));
      if (kLeft) left += kStep - ones;
      if (kRight) right += ones;
    }
  }

  // Lists of up to 64 values stay in a register, on the whole way down the tree and back.
  struct Few {
    __m512i v;
  };
  static constexpr size_t kFew = 64;
  static Few few(const std::byte* list) { return {load(list)}; }
  static Few some(const std::byte* list, size_t n) {
    return {_mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - n), list)};
  }
  static Few all(std::byte value) { return {_mm512_set1_epi8(static_cast<char>(value))}; }
  static void put_few(Few list, std::byte* out) { store(out, list.v); }
  static uint64_t above(Few list, uint8_t split) {
    return _mm512_cmpge_epu8_mask(list.v, _mm512_set1_epi8(static_cast<char>(split)));
  }
  static Few those(Few list, uint64_t mask) { return {_mm512_maskz_compress_epi8(mask, list.v)}; }
  static Few merge_few(uint64_t bits, Few left, Few right) {
    return {_mm512_or_si512(_mm512_maskz_expand_epi8(~bits, left.v),
                            _mm512_maskz_expand_epi8(bits, right.v))};
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
    if (std::has_single_bit(mask)) {
      const __m512i one = _mm512_set1_epi8(static_cast<char>(mask));
      for (size_t i = 0; i < n; i += kStep) {
        uint64_t bits = _mm512_test_epi8_mask(load(values + i), one);
        if (n - i < kStep) bits &= (uint64_t{1} << (n - i)) - 1;
        std::memcpy(out + i / 8, &bits, sizeof(bits));
      }
      return;
    }
    const uint64_t kept = uint64_t{0x0101010101010101} * mask;
    const auto width = static_cast<size_t>(std::popcount(kept));
    for (size_t i = 0; i < n; i += kStep) {
      __m512i v = load(values + i);
      if (n - i < kStep) v = _mm512_maskz_mov_epi8((uint64_t{1} << (n - i)) - 1, v);
      v = _mm512_maskz_compress_epi8(kept, transpose(v));
      // Stores that overlap wait for each other.
      if (width <= 32)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(v));
      else
        store(out, v);
      out += width;
    }
  }
  template <bool kOver>
  static void put_bits(const std::byte* bits, size_t n, uint8_t mask, std::byte* values) {
    if (std::has_single_bit(mask)) {
      const __m512i one = _mm512_set1_epi8(static_cast<char>(mask));
      const auto put = [&](uint64_t is, size_t i) {
        const __m512i bits_of = _mm512_maskz_mov_epi8(is, one);
        // With kOver the others as they are: (values & ~one) | bits_of.
        store(values + i,
              kOver ? _mm512_ternarylogic_epi64(load(values + i), one, bits_of, 0xBA) : bits_of);
      };
      const size_t whole = n / kStep * kStep;
      for (size_t i = 0; i < whole; i += kStep) put(word(bits + i / 8, 8), i);
      if (whole < n) put(word(bits + whole / 8, (n - whole + 7) / 8), whole);
      return;
    }
    const uint64_t kept = uint64_t{0x0101010101010101} * mask;
    const auto width = static_cast<size_t>(std::popcount(kept));
    const __m512i others = _mm512_set1_epi8(static_cast<char>(~mask));
    // Where each byte of eight squares comes from: spread by the mask and turned around at once.
    const __m512i reversed = _mm512_load_si512(kReversed.data());
    const __m512i from = _mm512_permutexvar_epi8(
        reversed, _mm512_maskz_expand_epi8(kept, _mm512_load_si512(kPlaces.data())));
    const uint64_t some =
        _mm512_movepi8_mask(_mm512_permutexvar_epi8(reversed, _mm512_movm_epi8(kept)));
    const auto put = [&](__m512i v, size_t i) {
      v = product(_mm512_maskz_permutexvar_epi8(some, from, v));
      if (kOver) v = _mm512_or_si512(v, _mm512_and_si512(load(values + i), others));
      store(values + i, v);
    };
    const size_t size = (n + 7) / 8 * width / 8;
    size_t i = 0, at = 0;
    for (; at + 64 <= size; i += kStep, at += width) put(load(bits + at), i);
    for (; i < n; i += kStep, at += width) {
      const size_t there = std::min(width, size - at);
      put(_mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - there), bits + at), i);
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
  static uint64_t last_word(const std::byte* from, size_t size) {
    const auto there = static_cast<__mmask16>((1u << size) - 1);
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_maskz_loadu_epi8(there, from)));
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
    return product(_mm512_permutexvar_epi8(_mm512_load_si512(kReversed.data()), v));
  }
  // With the bytes of each square turned around already.
  static __m512i product(__m512i turned) {
    const __m512i unit = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201));
    return _mm512_gf2p8affine_epi64_epi8(unit, turned, 0);
  }

  template <typename Lane>
  static __m512i pick_two(__m512i a, const Lanes<Lane>& places, __m512i b) {
    const __m512i at = _mm512_load_si512(places.data());
    if constexpr (sizeof(Lane) == 1) return _mm512_permutex2var_epi8(a, at, b);
    if constexpr (sizeof(Lane) == 2) return _mm512_permutex2var_epi16(a, at, b);
    if constexpr (sizeof(Lane) == 4) return _mm512_permutex2var_epi32(a, at, b);
  }
  // Of kN registers, the even lanes of two neighbours, and behind those of all the odd ones.
  template <typename Lane, size_t kN>
  static void take_apart(__m512i* v, const Pairs<Lane>& places) {
    __m512i a[kN];
#pragma GCC unroll 8
    for (size_t k = 0; k < kN; k += 2) {
      a[k / 2] = pick_two(v[k], places.even, v[k + 1]);
      a[k / 2 + kN / 2] = pick_two(v[k], places.odd, v[k + 1]);
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < kN; ++k) v[k] = a[k];
  }
  // The way back.
  template <typename Lane, size_t kN>
  static void put_together(__m512i* v, const Pairs<Lane>& places) {
    __m512i a[kN];
#pragma GCC unroll 8
    for (size_t k = 0; k < kN; k += 2) {
      a[k] = pick_two(v[k / 2], places.first, v[k / 2 + kN / 2]);
      a[k + 1] = pick_two(v[k / 2], places.second, v[k / 2 + kN / 2]);
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < kN; ++k) v[k] = a[k];
  }

  static void split2(__m512i (&v)[2]) {
    v[0] = _mm512_shldi_epi16(v[0], v[0], 1);
    v[1] = _mm512_shldi_epi16(v[1], v[1], 1);
    take_apart<uint8_t, 2>(v, kBytePairs);
  }
  static void join2(__m512i (&v)[2]) {
    put_together<uint8_t, 2>(v, kBytePairs);
    v[0] = _mm512_shrdi_epi16(v[0], v[0], 1);
    v[1] = _mm512_shrdi_epi16(v[1], v[1], 1);
  }

  // Halves of elements, of two registers each, and then bytes of halves.
  static void split4(__m512i (&v)[4]) {
#pragma GCC unroll 4
    for (__m512i& x : v) x = _mm512_rol_epi32(x, 1);
    take_apart<uint16_t, 4>(v, kWordPairs);
    take_apart<uint8_t, 2>(v, kBytePairs);
    take_apart<uint8_t, 2>(v + 2, kBytePairs);
  }
  static void join4(__m512i (&v)[4]) {
    put_together<uint8_t, 2>(v, kBytePairs);
    put_together<uint8_t, 2>(v + 2, kBytePairs);
    put_together<uint16_t, 4>(v, kWordPairs);
#pragma GCC unroll 4
    for (__m512i& x : v) x = _mm512_ror_epi32(x, 1);
  }

  static void split8(__m512i (&v)[8], uint64_t base) {
    const __m512i exponent = _mm512_set1_epi64(static_cast<int64_t>(kExponent64));
    const __m512i off = _mm512_set1_epi64(static_cast<int64_t>(base));
#pragma GCC unroll 8
    for (__m512i& x : v) {
      const __mmask8 some = _mm512_test_epi64_mask(x, exponent);
      x = _mm512_rol_epi64(_mm512_mask_sub_epi64(x, some, x, off), 4);
    }
    take_apart<uint32_t, 8>(v, kDoublePairs);
#pragma GCC unroll 2
    for (size_t k = 0; k < 8; k += 4) take_apart<uint16_t, 4>(v + k, kWordPairs);
#pragma GCC unroll 4
    for (size_t k = 0; k < 8; k += 2) take_apart<uint8_t, 2>(v + k, kBytePairs);
  }
  static void join8(__m512i (&v)[8], uint64_t base) {
    const __m512i exponent = _mm512_set1_epi64(static_cast<int64_t>(kExponent64));
    const __m512i off = _mm512_set1_epi64(static_cast<int64_t>(base));
#pragma GCC unroll 4
    for (size_t k = 0; k < 8; k += 2) put_together<uint8_t, 2>(v + k, kBytePairs);
#pragma GCC unroll 2
    for (size_t k = 0; k < 8; k += 4) put_together<uint16_t, 4>(v + k, kWordPairs);
    put_together<uint32_t, 8>(v, kDoublePairs);
#pragma GCC unroll 8
    for (__m512i& x : v) {
      x = _mm512_ror_epi64(x, 4);
      const __mmask8 some = _mm512_test_epi64_mask(x, exponent);
      x = _mm512_mask_add_epi64(x, some, x, off);
    }
  }
};

}  // namespace planes
}  // namespace

extern const Kernel planes_avx512;
const Kernel planes_avx512 = planes::kernel<planes::Avx512Ops>("avx512", has_avx512);

}  // namespace wirepress
