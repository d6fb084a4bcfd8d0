// SPDX-License-Identifier: Apache-2.0
// 16 values at a time.
//
// Encoder: the codes of 16 values are made in 32-bit lanes and joined by twos and by fours in
// registers, so that few of them go through the bit position, which is the only serial dependence.
//
// Decoder: of each of 64 bits in turn it finds where the code that began there would end, and
// where that one's successor would, and so on by doubling; so that what is serial is one lookup for
// 64 bits. Then 16 codes at a time become values: exponents are sums of differences since the last
// code that has no difference, equal values are fetched from the last lane that is not equal.

// gcc 12 takes the undefined operands of its own intrinsics for mistakes.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "codecs/fre/code.hpp"

namespace wirepress {
namespace {

constexpr int kMostM = 19;  // a code fits 31 bits
constexpr size_t kGroup = 16;

// Of three operands of a ternary logic instruction.
constexpr int kThirdPicks = 0xE4;       // third ? first : second
constexpr int kFirstTwoOrThird = 0xEA;  // first & second | third

// What the encoder knows of a case, by d & 31; the cases without a difference stand where no d
// between -10 and 10 points. In this order of bits: where the payload goes (5: a rotation), prefix
// (10), whether the payload has an exponent (1), unused (10), bits of the code (6).
constexpr unsigned kCodePrefix = 5;
constexpr uint32_t kCodeEscape = 1u << 15;
constexpr unsigned kCodeSize = 26;
constexpr int kEscapeIndex = kMaxDifference + 1;  // and -kEscapeIndex
constexpr int kZeroIndex = 16;

uint32_t encoder_entry(const Row& row, unsigned rotation, uint32_t flag) {
  return rotation | uint32_t{row.bits} << kCodePrefix | flag | uint32_t{row.size} << kCodeSize;
}

// What the decoder knows of a class of codes. In this order of bits: the rotation that puts the
// fraction in its place (5), flags, and abs(d), or 6 where that says its 2 bits (4, the uppermost).
enum Class { kClassDifference = kDifference, kClassLong = kClassDifference + 6, kClasses };
constexpr uint32_t kIsEqual = 1u << 8;
constexpr uint32_t kIsZero = 1u << 9;
constexpr uint32_t kIsDenormal = 1u << 10;
constexpr uint32_t kIsEscape = 1u << 11;
constexpr uint32_t kIsDifference = 1u << 12;
constexpr uint32_t kIsLong = 1u << 13;
constexpr unsigned kClassDistance = 28;

constexpr unsigned kClassBits = 7;  // that tell the class, and so the size, of a code

struct Avx512 : Portable {
  struct State : Table {
    alignas(64) std::array<uint32_t, 32> entry;
    alignas(64) std::array<uint8_t, 1u << kClassBits> code_size;
    alignas(64) std::array<uint8_t, 1u << kClassBits> code_class;
    alignas(64) std::array<uint32_t, 16> class_info;
  };

  static void make(const Args& args, State* state) {
    make_table(args, state);
    const Row& escape = state->row[kEscape];
    state->entry.fill(encoder_entry(escape, escape.prefix, kCodeEscape));
    for (int d = -kMaxDifference; d <= kMaxDifference; ++d) {
      const Row& row = state->row[static_cast<size_t>(kDifference + kMaxDifference + d)];
      state->entry[static_cast<size_t>(d & 31)] = encoder_entry(row, row.prefix, 0);
    }
    // The sign of a zero is at bit m of the payload, as with the others, and goes to bit 4.
    const Row& zero = state->row[kZero];
    state->entry[kZeroIndex] = encoder_entry(zero, (zero.prefix - state->m) & 31, 0);
    make_classes(state);
  }

  static void make_classes(State* state) {
    constexpr uint32_t kFlag[] = {kIsEqual, kIsZero, kIsDenormal, kIsEscape};
    state->class_info.fill(0);
    for (size_t bits = 0; bits < state->code_class.size(); ++bits) {
      const size_t index = state->step[bits].row;
      const Row& row = state->row[index];
      const int d = static_cast<int>(index) - kDifference - kMaxDifference;
      const uint32_t k = index < kDifference ? 0 : static_cast<uint32_t>(std::min(std::abs(d), 6));
      const size_t code_class = index < kDifference ? index : kClassDifference + k;
      const uint32_t flags = index < kDifference ? kFlag[index] : kIsDifference;
      state->code_size[bits] = row.size;
      state->code_class[bits] = static_cast<uint8_t>(code_class);
      state->class_info[code_class] = static_cast<uint32_t>(row.prefix - row.left) % 32 | flags |
                                      (k == 6 ? kIsLong : 0) | k << kClassDistance;
    }
  }

  template <class Element>
  static size_t encode(const Quantiser& quantise, const State& state, const std::byte* src,
                       size_t n, BitWriter* out);

  template <class Element, bool kHalf>
  static void decode(const State& state, size_t ways, Stream<Element>* streams,
                     std::byte* const* dst, const size_t* n);
};

template <class Element>
__m512i load_values(const std::byte* src) {
  if constexpr (sizeof(Element) == 4) return _mm512_loadu_si512(src);
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

__m512i all(uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

// The same, kept in a register: gcc makes known constants anew wherever they are used.
__m512i held(uint32_t value) {
  __m512i result = all(value);
  asm("" : "+v"(result));
  return result;
}

// The quantiser for values that are normal and stay finite, or are zeros.
struct WideQuantiser {
  explicit WideQuantiser(const Quantiser& q)
      : drop(held(q.drop)),
        bias(held(q.bias)),
        odd(held(q.tie_mask << q.tie_shift)),
        limit(held(2 * (kInfinity - q.bias - 1 - kNormal))) {}

  __mmask16 special(__m512i word, __mmask16 zeros) const {
    const __m512i twice = _mm512_add_epi32(word, word);  // without its sign
    return _mm512_mask_cmpge_epu32_mask(_knot_mask16(zeros), _mm512_sub_epi32(twice, normal),
                                        limit);
  }
  __m512i operator()(__m512i word) const {
    __m512i sum = _mm512_add_epi32(word, bias);
    sum = _mm512_mask_add_epi32(sum, _mm512_test_epi32_mask(word, odd), sum, one);
    return _mm512_andnot_si512(drop, sum);
  }

  static constexpr uint32_t kNormal = kFraction + 1;
  __m512i drop, bias, odd, limit;
  __m512i one = held(1);
  __m512i normal = held(2 * kNormal);
};

__mmask16 zeros_of(__m512i word) { return _mm512_testn_epi32_mask(word, all(~kSign)); }

// Codes in 32-bit lanes, with their sizes.
struct Codes {
  __m512i bits;
  __m512i size;
};

struct WideCoder {
  explicit WideCoder(const Avx512::State& state)
      : table_low(_mm512_load_si512(state.entry.data())),
        table_high(_mm512_load_si512(state.entry.data() + kGroup)),
        fraction_mask(all((1u << state.m) - 1)),
        fraction_shift(_mm_cvtsi32_si128(static_cast<int>(kFractionBits - state.m))),
        sign_shift(_mm_cvtsi32_si128(static_cast<int>(31 - state.m))) {}

  // Of values that are no denormals; `escapes` have exponent 255.
  [[gnu::always_inline]] Codes operator()(__m512i q, __m512i previous, __mmask16 zeros,
                                          __mmask16 escapes) const {
    __m512i d =
        _mm512_sub_epi32(_mm512_and_si512(q, exponents), _mm512_and_si512(previous, exponents));
    d = _mm512_srai_epi32(d, kFractionBits);
    d = _mm512_max_epi32(_mm512_min_epi32(d, escape_index), minus_escape_index);
    d = _mm512_mask_mov_epi32(d, escapes, escape_index);
    d = _mm512_mask_mov_epi32(d, zeros, zero_index);
    const __m512i entry = _mm512_permutex2var_epi32(table_low, d, table_high);
    const __mmask16 unequal = _mm512_cmpneq_epi32_mask(q, previous);
    const __mmask16 plain = _mm512_testn_epi32_mask(entry, escape_flag);
    // Fraction and sign; of an escape all that stands above the fraction.
    const __m512i above = _mm512_srl_epi32(q, fraction_shift);
    const __m512i payload = _mm512_mask_ternarylogic_epi32(
        above, plain, _mm512_srl_epi32(q, sign_shift), fraction_mask, kThirdPicks);
    const __m512i bits =
        _mm512_maskz_ternarylogic_epi32(unequal, _mm512_srli_epi32(entry, kCodePrefix), prefix_mask,
                                        _mm512_rolv_epi32(payload, entry), kFirstTwoOrThird);
    return {bits, _mm512_mask_srli_epi32(equal_size, unequal, entry, kCodeSize)};
  }

  __m512i table_low, table_high;
  __m512i fraction_mask;
  __m128i fraction_shift, sign_shift;
  __m512i exponents = held(kInfinity);
  __m512i escape_index = held(kEscapeIndex);
  __m512i minus_escape_index = held(0u - kEscapeIndex);
  __m512i zero_index = held(kZeroIndex);
  __m512i escape_flag = held(kCodeEscape);
  __m512i prefix_mask = held((1u << kPrefixBits) - 1);
  __m512i equal_size = held(2);
};

struct Group {
  __m512i q;
  Codes codes;
};

// Any values: those that the vectors have no rule for are quantised one by one.
[[gnu::noinline]] Group encode_special(const Quantiser& quantise, const WideCoder& coder,
                                       __m512i word, __m512i last) {
  alignas(64) uint32_t each[kGroup];
  _mm512_store_si512(each, word);
  for (uint32_t& value : each) value = quantise(value);
  const __m512i q = _mm512_load_si512(each);
  const __m512i previous = _mm512_alignr_epi32(q, last, kGroup - 1);
  const __mmask16 escapes = _mm512_cmpge_epu32_mask(_mm512_add_epi32(q, q), all(2 * kInfinity));
  const Codes codes = coder(q, previous, zeros_of(q), escapes);

  const __mmask16 denormals = _mm512_testn_epi32_mask(q, all(kInfinity)) &
                              _mm512_test_epi32_mask(q, all(kFraction)) &
                              _mm512_cmpneq_epi32_mask(q, previous);
  const __m512i payload = _mm512_or_si512(_mm512_and_si512(q, all(kFraction)),
                                          _mm512_slli_epi32(_mm512_srli_epi32(q, 31), 23));
  const __m512i bits = _mm512_or_si512(_mm512_slli_epi32(payload, 4), all(0b1010));
  return {q,
          {_mm512_mask_mov_epi32(codes.bits, denormals, bits),
           _mm512_mask_mov_epi32(codes.size, denormals, all(kDenormalBits))}};
}

// Joins neighbours: 64-bit lanes of two codes each.
[[gnu::always_inline]] inline Codes join_twos(Codes codes) {
  const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
  const __m512i first = _mm512_and_si512(codes.size, low);
  const __m512i second = _mm512_sllv_epi64(_mm512_srli_epi64(codes.bits, 32), first);
  return {_mm512_ternarylogic_epi64(codes.bits, low, second, kFirstTwoOrThird),
          _mm512_add_epi64(first, _mm512_srli_epi64(codes.size, 32))};
}

// Bits that stand next to each other in the stream, in pieces of up to 63.
class Pieces {
 public:
  static constexpr size_t kMost = 512;  // values between two calls of drain()

  // A piece is four codes where they all fit, which is nearly always so while m is small, else two,
  // and one while m is large. Behind n pieces; how many there are then.
  [[gnu::always_inline]] size_t add(Codes codes, unsigned m, size_t n) {
    constexpr int kSwap = 0x4E;  // the 64-bit halves of 128 bits
    if (m > kShortM) {
      add_eight(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(codes.bits)),
                _mm512_cvtepu32_epi64(_mm512_castsi512_si256(codes.size)), n);
      add_eight(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(codes.bits, 1)),
                _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(codes.size, 1)), n + 8);
      return n + 16;
    }
    const Codes twos = join_twos(codes);
    const __m512i size =
        _mm512_add_epi64(twos.size, _mm512_shuffle_epi32(twos.size, _MM_PERM_ENUM(kSwap)));
    if (m <= kFoursM && _mm512_cmpgt_epu64_mask(size, most_) == 0) [[likely]] {
      const __m512i second =
          _mm512_sllv_epi64(_mm512_shuffle_epi32(twos.bits, _MM_PERM_ENUM(kSwap)), twos.size);
      add_eight(_mm512_maskz_compress_epi64(0x55, _mm512_or_si512(twos.bits, second)),
                _mm512_maskz_compress_epi64(0x55, size), n);
      return n + 4;
    }
    add_eight(twos.bits, twos.size, n);
    return n + 8;
  }

  void drain(size_t n, BitWriter* out) { out->put(bits_, size_, n); }

 private:
  static constexpr unsigned kFoursM = 6;

  [[gnu::always_inline]] void add_eight(__m512i bits, __m512i size, size_t n) {
    _mm512_storeu_si512(bits_ + n, bits);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(size_ + n), _mm512_cvtepi64_epi8(size));
  }

  __m512i most_ = _mm512_set1_epi64(63);
  uint64_t bits_[kMost + 8];
  uint8_t size_[kMost + 8];
};

template <class Element>
size_t Avx512::encode(const Quantiser& quantise, const State& state, const std::byte* src, size_t n,
                      BitWriter* out) {
  if (state.m > kMostM) return 0;
  const WideQuantiser wide(quantise);
  const WideCoder coder(state);
  const bool flush = quantise.zero_keep == 0;
  Pieces pieces;
  __m512i last = _mm512_setzero_si512();
  size_t i = 0;
  while (i + kGroup <= n && !out->full()) {
    const size_t end = i + std::min(Pieces::kMost, (n - i) / kGroup * kGroup);
    size_t n_pieces = 0;
    for (; i < end; i += kGroup) {
      const __m512i word = load_values<Element>(src + sizeof(Element) * i);
      const __mmask16 zeros = zeros_of(word);
      Group group;
      if (_mm512_mask2int(wide.special(word, zeros)) == 0 && !flush) [[likely]] {
        group.q = wide(word);
        group.codes = coder(group.q, _mm512_alignr_epi32(group.q, last, kGroup - 1), zeros, 0);
      } else {
        group = encode_special(quantise, coder, word, last);
      }
      n_pieces = pieces.add(group.codes, state.m, n_pieces);
      last = group.q;
    }
    pieces.drain(n_pieces, out);
  }
  return i;
}

// ---- decoder --------------------------------------------------------------------------------

template <class F>
[[gnu::always_inline]] inline void each_of_two(F f) {
  f(size_t{0});
  f(size_t{1});
}

// Where codes begin, in bits from a byte of the stream.
class Positions {
 public:
  static constexpr size_t kMost = 512;

  explicit Positions(const Avx512::State& state)
      : size_low_(_mm512_load_si512(state.code_size.data())),
        size_high_(_mm512_load_si512(state.code_size.data() + 64)) {
    alignas(64) uint8_t iota[64], spread[64], bit[64], beyond[64];
    for (unsigned i = 0; i < 64; ++i) {
      iota[i] = static_cast<uint8_t>(i);
      beyond[i] = static_cast<uint8_t>(64 + i);
      spread[i] = static_cast<uint8_t>(i / 8 + i % 8);
      bit[i] = static_cast<uint8_t>(i % 8);
    }
    iota_ = _mm512_load_si512(iota);
    beyond_ = _mm512_load_si512(beyond);
    spread_ = _mm512_load_si512(spread);
    bit_ = _mm512_load_si512(bit);
  }

  size_t n() const { return n_; }
  const uint16_t* data() const { return at_; }
  size_t operator[](size_t i) const { return at_[i]; }

  // From bit `first` of src on, at least `enough` or what begins in the first whole pairs of words
  // of `size` bytes, or up to a word of zeros. [n()] is where the next one begins.
  void find(const std::byte* src, size_t size, unsigned first, size_t enough) {
    __m512i from = _mm512_set1_epi8(static_cast<char>(first));
    size_t begin = 0;  // of two words of 64 bits
    size_t n = 0;
    for (; begin + kStep + 8 <= size && n < enough; begin += kStep) {
      uint64_t word;
      std::memcpy(&word, src + begin, sizeof(word));
      if (word == 0 && begin > 0) break;
      n = add_words(src + begin, static_cast<uint16_t>(8 * begin), &from, n);
    }
    n_ = n;
    at_[n_] = static_cast<uint16_t>(
        8 * begin + static_cast<uint8_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(from))));
  }

 private:
  static constexpr size_t kStep = 16;

  // Of every bit of a word, where the code that begins there ends: the next begins. And where the
  // second, fourth and so on after that does. From 64 on that is beyond the word, and final.
  struct Word {
    __m512i next1, next2, next4, next8, next16, next32;
  };

  // The codes that begin in two words, which are handled side by side for the processor's sake.
  // *first, in all lanes, is the bit that the first one begins at, and becomes that in the next
  // word. Returns how many there are, with the n before.
  [[gnu::always_inline]] size_t add_words(const std::byte* src, uint16_t origin, __m512i* first,
                                          size_t n) {
    Word word[2];
    each_of_two([&](size_t k) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 8 * k));
      const __m512i eights = _mm512_permutexvar_epi8(spread_, _mm512_zextsi128_si512(bytes));
      const __m512i peek = _mm512_multishift_epi64_epi8(bit_, eights);
      const __m512i size = _mm512_permutex2var_epi8(size_low_, peek, size_high_);
      word[k].next1 = _mm512_add_epi8(size, iota_);
    });
    each_of_two([&](size_t k) { word[k].next2 = twice(word[k].next1); });
    each_of_two([&](size_t k) { word[k].next4 = twice(word[k].next2); });
    each_of_two([&](size_t k) { word[k].next8 = twice(word[k].next4); });
    each_of_two([&](size_t k) { word[k].next16 = twice(word[k].next8); });
    each_of_two([&](size_t k) { word[k].next32 = twice(word[k].next16); });

    __m512i at[2];  // of up to 32 codes
    each_of_two([&](size_t k) {
      at[k] = *first;
      *first = _mm512_sub_epi8(_mm512_permutexvar_epi8(*first, word[k].next32), word_bits_);
    });
    const auto move = [&](__m512i* lane, __m512i next, __mmask64 lanes) {
      *lane = _mm512_mask2_permutex2var_epi8(next, *lane, lanes, beyond_);
    };
    each_of_two([&](size_t k) { move(&at[k], word[k].next16, 0xFFFF0000); });
    each_of_two([&](size_t k) { move(&at[k], word[k].next8, 0xFF00FF00); });
    each_of_two([&](size_t k) { move(&at[k], word[k].next4, 0xF0F0F0F0); });
    each_of_two([&](size_t k) { move(&at[k], word[k].next2, 0xCCCCCCCC); });
    each_of_two([&](size_t k) { move(&at[k], word[k].next1, 0xAAAAAAAA); });
    each_of_two([&](size_t k) {
      const __m256i codes = _mm512_castsi512_si256(at[k]);
      const __m512i from = _mm512_set1_epi16(static_cast<short>(origin + 64 * k));
      _mm512_storeu_si512(at_ + n, _mm512_add_epi16(_mm512_cvtepu8_epi16(codes), from));
      n += static_cast<size_t>(std::popcount(_mm256_testn_epi8_mask(codes, _mm256_set1_epi8(64))));
    });
    return n;
  }

  __m512i twice(__m512i next) const { return _mm512_permutex2var_epi8(next, next, beyond_); }

  __m512i size_low_, size_high_, iota_, beyond_, spread_, bit_;
  __m512i word_bits_ = _mm512_set1_epi8(64);
  size_t n_ = 0;
  uint16_t at_[kMost + 2 * 32 + 32];
};

// Lane i: the last lane up to i that is in the mask, or -1.
[[gnu::always_inline]] inline __m512i last_of(__mmask16 mask, __m512i up_to) {
  const __m512i lanes = _mm512_and_si512(_mm512_broadcastmw_epi32(mask), up_to);
  return _mm512_sub_epi32(all(31), _mm512_lzcnt_epi32(lanes));
}

// Values from codes.
template <class Element, bool kHalf>
class Values {
 public:
  explicit Values(const Avx512::State& state)
      : class_low_(_mm512_load_si512(state.code_class.data())),
        class_high_(_mm512_load_si512(state.code_class.data() + 64)),
        info_(_mm512_load_si512(state.class_info.data())),
        fraction_(all(kFraction >> (kFractionBits - state.m) << (kFractionBits - state.m))),
        all_but_cut_(_mm512_or_si512(fraction_, all(kSign | kInfinity))),
        negative_(all(1u << (kFractionBits - 1 - state.m))),
        long_shift_(_mm_cvtsi32_si128(static_cast<int>(kFractionBits - 3 - state.m))),
        half_(all(state.half)) {
    alignas(64) uint32_t masks[16];
    for (unsigned i = 0; i < 16; ++i) masks[i] = (2u << i) - 1;
    up_to_ = _mm512_load_si512(masks);
  }

  bool bad() const { return bad_ != 0; }
  uint32_t previous() const { return static_cast<uint32_t>(_mm512_cvtsi512_si32(previous_)); }

  // The codes of the first `n` lanes, 1 to 16, at bits `at` from src; 64 bytes can be read from
  // the one that the first begins in.
  [[gnu::always_inline]] void decode(const std::byte* src, const uint16_t* at, size_t n,
                                     std::byte* dst) {
    const __mmask16 lanes = static_cast<__mmask16>((1u << n) - 1);
    const size_t begin = at[0] / 8;
    const __m512i bits = _mm512_loadu_si512(src + begin);
    const __m512i place = _mm512_sub_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))),
        all(static_cast<uint32_t>(8 * begin)));
    const __m512i word = _mm512_srli_epi32(place, 5);
    const __m512i code =
        _mm512_shrdv_epi32(_mm512_permutexvar_epi32(word, bits),
                           _mm512_permutexvar_epi32(_mm512_add_epi32(word, one_), bits), place);

    const __m512i code_class = _mm512_permutex2var_epi8(class_low_, code, class_high_);
    const __m512i info = _mm512_permutexvar_epi32(code_class, info_);
    const __mmask16 escape = _mm512_test_epi32_mask(info, escape_flag_);
    const __mmask16 zero = _mm512_test_epi32_mask(info, zero_flag_);
    const __mmask16 denormal = _mm512_mask_test_epi32_mask(lanes, info, denormal_flag_);
    const __mmask16 difference = _mm512_test_epi32_mask(info, difference_flag_);
    const __mmask16 equal = _mm512_test_epi32_mask(info, equal_flag_);

    // The fraction in its place, the sign above it or, with an exponent, in its place.
    const __m512i turned = _mm512_rorv_epi32(code, info);
    const __m512i sign = _mm512_slli_epi32(turned, 8);
    __m512i value = _mm512_ternarylogic_epi32(sign, sign_, _mm512_and_si512(turned, fraction_),
                                              kFirstTwoOrThird);
    value = _mm512_mask_and_epi32(value, zero, sign, sign_);
    value = _mm512_mask_and_epi32(value, escape, turned, all_but_cut_);
    if (_mm512_mask2int(denormal) != 0) [[unlikely]] {
      const __m512i exact = _mm512_ternarylogic_epi32(
          sign, sign_, _mm512_and_si512(turned, all(kFraction)), kFirstTwoOrThird);
      value = _mm512_mask_mov_epi32(value, denormal, exact);
      if (sizeof(Element) == 2) bad_ |= _mm512_mask_test_epi32_mask(denormal, value, all(0xFFFF));
    }

    // Exponents: sums of differences since a lane without one, or the value before.
    const __m512i e = exponents(turned, info, value, equal, difference);
    const __mmask16 normal = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(e, one_), most_);
    bad_ |= lanes & difference & ~normal;
    bad_ |= lanes & escape & _mm512_testn_epi32_mask(e, e);
    value = _mm512_mask_or_epi32(value, difference, value, _mm512_slli_epi32(e, kFractionBits));
    value = _mm512_permutex2var_epi32(value, last_of(~equal, up_to_), previous_);
    const __m512i last = n == kGroup ? lane_15_ : all(static_cast<uint32_t>(n - 1));
    previous_ = _mm512_permutexvar_epi32(last, value);
    exponent_ = _mm512_permutexvar_epi32(last, e);
    if (kHalf) value = _mm512_mask_add_epi32(value, normal, value, half_);
    store(dst, lanes, value);
  }

  // n values equal to the last one.
  void repeat(std::byte* dst, size_t n) {
    const __mmask16 normal = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(exponent_, one_), most_);
    const __m512i value =
        kHalf ? _mm512_mask_add_epi32(previous_, normal, previous_, half_) : previous_;
    for (; n >= kGroup; n -= kGroup, dst += sizeof(Element) * kGroup) store(dst, 0xFFFF, value);
    store(dst, static_cast<__mmask16>((1u << n) - 1), value);
  }

 private:
  [[gnu::always_inline]] __m512i exponents(__m512i turned, __m512i info, __m512i value,
                                           __mmask16 equal, __mmask16 difference) const {
    const __m512i none = _mm512_setzero_si512();
    const __m512i more = _mm512_and_si512(_mm512_srl_epi32(turned, long_shift_), three_);
    __m512i d = _mm512_srli_epi32(info, kClassDistance);
    d = _mm512_mask_add_epi32(d, _mm512_test_epi32_mask(info, long_flag_), d, more);
    d = _mm512_mask_sub_epi32(d, _mm512_test_epi32_mask(turned, negative_), none, d);
    __m512i sum = _mm512_add_epi32(d, _mm512_alignr_epi32(d, none, 15));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 14));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 12));
    sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, none, 8));
    const __m512i own = _mm512_srli_epi32(_mm512_add_epi32(value, value), 24);
    const __m512i from = last_of(static_cast<__mmask16>(~(equal | difference)), up_to_);
    return _mm512_add_epi32(sum,
                            _mm512_permutex2var_epi32(_mm512_sub_epi32(own, sum), from, exponent_));
  }

  static void store(std::byte* dst, __mmask16 lanes, __m512i value) {
    if constexpr (sizeof(Element) == 4) {
      _mm512_mask_storeu_epi32(dst, lanes, value);
    } else {
      _mm256_mask_storeu_epi16(dst, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(value, 16)));
    }
  }

  __m512i class_low_, class_high_, info_, fraction_, all_but_cut_, negative_;
  __m128i long_shift_;
  __m512i half_, up_to_;
  __m512i escape_flag_ = held(kIsEscape);
  __m512i zero_flag_ = held(kIsZero);
  __m512i denormal_flag_ = held(kIsDenormal);
  __m512i difference_flag_ = held(kIsDifference);
  __m512i equal_flag_ = held(kIsEqual);
  __m512i long_flag_ = held(kIsLong);
  __m512i sign_ = held(kSign);
  __m512i one_ = held(1);
  __m512i three_ = held(3);
  __m512i most_ = held(254);
  __m512i lane_15_ = held(15);
  __m512i previous_ = _mm512_setzero_si512();  // in all lanes
  __m512i exponent_ = _mm512_setzero_si512();
  __mmask16 bad_ = 0;
};

// How many codes of equal values follow each other from bit `at` on.
size_t count_equal(ConstBytes src, uint64_t at) {
  size_t byte = static_cast<size_t>(at / 8);
  uint64_t word = 0;
  std::memcpy(&word, src.data() + byte, sizeof(word));
  if (word >> at % 8 != 0) return static_cast<size_t>(std::countr_zero(word >> at % 8)) / 2;
  for (byte += sizeof(word); byte + 64 <= src.size(); byte += 64) {
    const __m512i more = _mm512_loadu_si512(src.data() + byte);
    const __mmask64 set = _mm512_test_epi8_mask(more, more);
    if (set == 0) continue;
    byte += static_cast<size_t>(std::countr_zero(set));
    break;
  }
  return static_cast<size_t>(8 * uint64_t{byte} - at) / 2;
}

// All but the end of a stream.
template <class Element, bool kHalf>
size_t decode_wide(const Avx512::State& state, Stream<Element>* stream, std::byte* dst, size_t n) {
  constexpr size_t kAhead = 64 + 24;  // bytes that are read from where a code begins
  constexpr size_t kRun = 28;
  const ConstBytes src = stream->rest();
  Positions positions(state);
  Values<Element, kHalf> values(state);
  uint64_t at = 0;
  size_t i = 0;
  while (i < n && at / 8 + kAhead <= src.size()) {
    const std::byte* from = src.data() + at / 8;
    if (const size_t run = std::min(count_equal(src, at), n - i); run >= kRun) {
      values.repeat(dst + sizeof(Element) * i, run);
      i += run;
      at += 2 * run;
      continue;
    }
    // No code that begins in what find() looks at is read beyond the end.
    positions.find(from, src.size() - static_cast<size_t>(at / 8) - 64,
                   static_cast<unsigned>(at % 8), std::min(Positions::kMost, n - i));
    const size_t count = std::min(positions.n(), n - i);
    size_t done = 0;
    for (; done + kGroup <= count; done += kGroup)
      values.decode(from, positions.data() + done, kGroup, dst + sizeof(Element) * (i + done));
    if (done < count)
      values.decode(from, positions.data() + done, count - done,
                    dst + sizeof(Element) * (i + done));
    i += count;
    at += positions[count] - at % 8;
  }
  stream->resume(at, values.previous(), values.bad());
  return i;
}

template <class Element, bool kHalf>
void Avx512::decode(const State& state, size_t ways, Stream<Element>* streams,
                    std::byte* const* dst, const size_t* n) {
  for (size_t way = 0; way < ways; ++way) {
    const size_t done =
        state.m > kMostM ? 0 : decode_wide<Element, kHalf>(state, &streams[way], dst[way], n[way]);
    decode_one<Element, kHalf>(state, &streams[way], dst[way] + sizeof(Element) * done,
                               dst[way] + sizeof(Element) * n[way]);
  }
}

}  // namespace

extern const Kernel fre_avx512;
const Kernel fre_avx512 = make_kernel<Avx512>("avx512", has_avx512);

}  // namespace wirepress
