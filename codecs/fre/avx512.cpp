// SPDX-License-Identifier: Apache-2.0
// 16 values at a time. Encoder: the codes of 16 values are made in 32-bit lanes and joined by twos
// and by fours in registers, so that few of them go through the bit position, which is the only
// serial dependence.

// gcc 12 takes the undefined operands of its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "codecs/fre/code.hpp"

namespace wirepress {
namespace {

constexpr int kMostM = 19;  // a code fits 31 bits
constexpr size_t kGroup = 16;

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

struct Avx512 : Portable {
  struct State : Table {
    alignas(64) std::array<uint32_t, 32> entry;
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
  }

  template <class Element>
  static size_t encode(const Quantiser& quantise, const State& state, const std::byte* src,
                       size_t n, BitWriter* out);
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

  static constexpr int kThirdPicks = 0xE4;       // third ? first : second
  static constexpr int kFirstTwoOrThird = 0xEA;  // first & second | third

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
  return {_mm512_ternarylogic_epi64(codes.bits, low, second, WideCoder::kFirstTwoOrThird),
          _mm512_add_epi64(first, _mm512_srli_epi64(codes.size, 32))};
}

// Bits that stand next to each other in the stream, in pieces of up to 56.
class Pieces {
 public:
  static constexpr size_t kMost = 512;  // values between two calls of drain()

  // A piece is four codes where they all fit, which is nearly always so while m is small, else two,
  // and one while m is large.
  [[gnu::always_inline]] void add(Codes codes, unsigned m) {
    constexpr int kSwap = 0x4E;  // the 64-bit halves of 128 bits
    if (m > kShortM) {
      add_eight(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(codes.bits)),
                _mm512_cvtepu32_epi64(_mm512_castsi512_si256(codes.size)), 8);
      add_eight(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(codes.bits, 1)),
                _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(codes.size, 1)), 8);
      return;
    }
    const Codes twos = join_twos(codes);
    const __m512i size =
        _mm512_add_epi64(twos.size, _mm512_shuffle_epi32(twos.size, _MM_PERM_ENUM(kSwap)));
    if (m <= kFoursM && _mm512_cmpgt_epu64_mask(size, most_) == 0) [[likely]] {
      const __m512i second =
          _mm512_sllv_epi64(_mm512_shuffle_epi32(twos.bits, _MM_PERM_ENUM(kSwap)), twos.size);
      add_eight(_mm512_maskz_compress_epi64(0x55, _mm512_or_si512(twos.bits, second)),
                _mm512_maskz_compress_epi64(0x55, size), 4);
    } else {
      add_eight(twos.bits, twos.size, 8);
    }
  }

  void drain(BitWriter* out) {
    BitWriter to = *out;
    for (size_t i = 0; i < n_; ++i) to.put(bits_[i], size_[i]);
    *out = to;
    n_ = 0;
  }

 private:
  static constexpr unsigned kFoursM = 8;

  [[gnu::always_inline]] void add_eight(__m512i bits, __m512i size, size_t count) {
    _mm512_storeu_si512(bits_ + n_, bits);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(size_ + n_), _mm512_cvtepi64_epi8(size));
    n_ += count;
  }

  size_t n_ = 0;
  __m512i most_ = _mm512_set1_epi64(56);
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
      pieces.add(group.codes, state.m);
      last = group.q;
    }
    pieces.drain(out);
  }
  return i;
}

}  // namespace

extern const Kernel fre_avx512;
const Kernel fre_avx512 = make_kernel<Avx512>("avx512", has_avx512);

}  // namespace wirepress
