// SPDX-License-Identifier: Apache-2.0
// float32 and bfloat16, 16 values at a time; the other types are portable. bfloat16 is widened: it
// is the upper half of a float32. Groups of at most 16 planes are made and read in 16-bit lanes.
#include <immintrin.h>

#include <array>

#include "codecs/bx/kernel.hpp"

namespace wirepress {
namespace {

using namespace bx;

constexpr int kExponentBit = 23;
constexpr uint32_t kOne = 1u << kExponentBit;  // the smallest word with exponent 1
constexpr uint32_t kSignBit = 1u << 31;
constexpr uint32_t kInf = 0xFF * kOne;
constexpr unsigned kBatch = 8;        // groups whose headers are made together
constexpr unsigned kShortDigits = 7;  // with 8 exponent planes and a sign plane: 16

template <typename F>
constexpr bool kNarrow = sizeof(typename F::Word) == 2;

inline __m256i all(uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
inline __m256i all16(unsigned word) { return _mm256_set1_epi16(static_cast<short>(word)); }
inline __m128i count(unsigned bits) { return _mm_cvtsi32_si128(static_cast<int>(bits)); }
inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void store(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
// As unsigned numbers.
inline __m256i at_least(__m256i a, __m256i b) {
  return _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
}

// transpose8 of portable.hpp, of each quadword.
inline __m256i transpose(__m256i x) {
  const auto step = [&](int bits, uint64_t mask) {
    const __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, bits)),
                                       _mm256_set1_epi64x(static_cast<long long>(mask)));
    x = _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, bits)));
  };
  step(7, 0x00AA00AA00AA00AA);
  step(14, 0x0000CCCC0000CCCC);
  step(28, 0x00000000F0F0F0F0);
  return x;
}

// In both halves: the bytes at even places, then those at odd places, and back.
inline __m256i even_odd(__m256i x) {
  return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                    0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)));
}
inline __m256i interleave(__m256i x) {
  return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                    0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)));
}
inline __m256i middle_swapped(__m256i x) { return _mm256_permute4x64_epi64(x, 0xD8); }

// ---- encoder ----------------------------------------------------------------------------------

// 8 groups on their way; as in avx512.cpp, one batch is read before the one before it is finished.
struct Batch {
  alignas(32) uint32_t word[kBatch * kGroup];  // quantised; of bfloat16 too
  alignas(32) uint16_t half[kBatch * kGroup];  // the upper halves of the words
  // By group. Masks are of its values in an order of their own.
  alignas(32) uint16_t zero[kBatch];  // those with exponent 0
  alignas(32) uint16_t negative[kBatch];
  alignas(32) uint16_t any[kBatch];   // those that are not +0; set by the careful quantiser
  alignas(32) uint16_t full[kBatch];  // denormals; as `any`
  alignas(32) uint32_t header[kBatch];
  alignas(32) uint32_t base[kBatch];
  alignas(32) uint32_t mixed[kBatch];  // ~0: there is a sign plane
  alignas(32) uint32_t size[kBatch];   // of the planes
  __m256i least;                       // exponent - 1, 255 where it is 0
  __m256i most;
  bool special;  // the quick quantiser does not know some value
};

// One number for each group, from the bytes of group 2k in the lower half of the k-th, of group
// 2k + 1 in the upper half.
template <typename Join>
inline __m256i reduce(__m256i a, __m256i b, __m256i c, __m256i d, Join join) {
  const __m256i ab = join(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  const __m256i cd = join(_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
  const auto half = [&](int which) {
    const __m256 x = _mm256_castsi256_ps(ab), y = _mm256_castsi256_ps(cd);
    return _mm256_castps_si256(which == 0 ? _mm256_shuffle_ps(x, y, 0x88)
                                          : _mm256_shuffle_ps(x, y, 0xDD));
  };
  __m256i x = join(half(0), half(1));  // groups 0 2 4 6, 1 3 5 7
  x = join(x, _mm256_srli_epi32(x, 16));
  x = join(x, _mm256_srli_epi32(x, 8));
  x = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  return _mm256_and_si256(x, all(0xFF));
}

// As in avx512.cpp. kExact: fractions are whole and nothing is flushed.
template <typename F, bool kNear, bool kFlush, bool kExact>
class Encoder {
 public:
  explicit Encoder(const Setting& setting)
      : m_(setting.m),
        drop_((kOne - 1) >> setting.m),
        bias_(kNear ? drop_ >> 1 : 0),
        half_(setting.round == kMidpoint && setting.m < F::kDigits ? drop_ - (drop_ >> 1) : 0) {}

  size_t chunk(const std::byte* src, size_t groups, std::byte* dst) const {
    constexpr size_t kBytes = kBatch * kGroup * sizeof(typename F::Word);
    const size_t n = (groups + kBatch - 1) / kBatch;
    Batch batch[2];
    alignas(2) uint8_t bitmap[kBitmapSize] = {};
    uint16_t header[kChunkGroups + 1];
    size_t present = 0;
    // Planes are written to where they belong in a dense chunk.
    std::byte* const planes = dst + kHeadSize + 2 * groups;
    std::byte* to = planes;
    read<kExact>(src, &batch[0]);
    for (size_t i = 0; i < n; ++i) {
      if (i + 1 < n) read<kExact>(src + (i + 1) * kBytes, &batch[(i + 1) % 2]);
      Batch& now = batch[i % 2];
      const bool special = !kExact && now.special;
      if (special) [[unlikely]] {
        read<true>(src + i * kBytes, &now);
        bitmap[i] = headers<true>(&now);
      } else {
        bitmap[i] = headers<kExact>(&now);
      }
      if (bitmap[i] == 0) continue;
      for (unsigned g = 0; g < kBatch; ++g) {  // what is not present is written over
        header[present] = static_cast<uint16_t>(now.header[g]);
        present += bitmap[i] >> g & 1;
        const bool full = special && now.full[g] != 0;
        to = write_planes(now, g, full ? F::kDigits : m_, to);
      }
    }
    const size_t planes_size = static_cast<size_t>(to - planes);
    std::byte* at = dst + kHeadSize;
    if (present != 0 && present != groups) {
      std::memmove(at + bitmap_size(groups) + 2 * present, planes, planes_size);
      std::memcpy(at, bitmap, bitmap_size(groups));
      at += bitmap_size(groups);
    }
    std::memcpy(at, header, 2 * present);
    const size_t size = static_cast<size_t>(at - dst) + 2 * present + planes_size;
    store16(dst, chunk_head(size - kHeadSize, present, groups));
    return size;
  }

 private:
  struct Eight {
    __m256i word;
    __m256i exponent;
    __m256i any;  // of the careful quantiser, as lanes of ones
    __m256i full;
  };

  __m256i quick(__m256i size) const {
    if constexpr (!kNear) return size;
    const __m256i odd = _mm256_and_si256(_mm256_srl_epi32(size, count(kExponentBit - m_)), all(1));
    return _mm256_add_epi32(_mm256_add_epi32(size, all(bias_)), odd);
  }

  __m256i careful(__m256i size) const {
    const __m256i cut = _mm256_andnot_si256(all(drop_), size);
    __m256i kept = _mm256_andnot_si256(all(drop_), quick(size));
    kept = _mm256_blendv_epi8(kept, cut, at_least(kept, all(kInf)));
    const __m256i infinite = at_least(size, all(kInf));
    const __m256i nan = at_least(size, all(kInf + 1));
    const __m256i lost = _mm256_and_si256(nan, _mm256_cmpeq_epi32(kept, all(kInf)));
    kept = _mm256_or_si256(kept, _mm256_and_si256(lost, all(kOne >> 1)));
    kept = _mm256_or_si256(kept, _mm256_andnot_si256(infinite, all(half_)));
    return _mm256_blendv_epi8(size, kept, at_least(size, all(kOne)));
  }

  template <bool kCareful>
  [[gnu::always_inline]] Eight eight(__m256i x, __m256i* small) const {
    __m256i size = _mm256_and_si256(x, all(~kSignBit));
    if constexpr (kFlush) {
      const __m256i keep = _mm256_cmpgt_epi32(size, all(kOne - 1));
      x = _mm256_and_si256(x, keep);
      size = _mm256_and_si256(size, keep);
    }
    const __m256i q = kExact ? size : kCareful ? careful(size) : quick(size);
    const __m256i less = _mm256_sub_epi32(size, all(1));
    Eight out;
    out.word = _mm256_or_si256(q, _mm256_and_si256(x, all(kSignBit)));
    out.exponent = _mm256_srli_epi32(q, kExponentBit);
    if constexpr (kCareful) {
      out.any = _mm256_cmpeq_epi32(x, _mm256_setzero_si256());
      out.full = at_least(less, all(kOne - 1));
    } else if constexpr (!kFlush) {
      *small = _mm256_min_epu32(*small, less);
    }
    return out;
  }

  // Two groups. Their exponents, byte by byte.
  template <bool kCareful>
  [[gnu::always_inline]] __m256i pair(const std::byte* src, unsigned g, Batch* batch,
                                      __m256i* small) const {
    Eight e[4];
    for (unsigned i = 0; i < 4; ++i) {
      __m256i x;
      if constexpr (kNarrow<F>) {
        const std::byte* from = src + (2 * g + i) * 16;
        x = _mm256_slli_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16);
      } else {
        x = load(src + (2 * g + i) * 32);
      }
      e[i] = eight<kCareful>(x, small);
      if (m_ > kShortDigits || (kCareful && !kNarrow<F>))
        store(batch->word + (2 * g + i) * 8, e[i].word);
    }
    const auto halves = [&](unsigned i) {
      const __m256i upper = _mm256_packus_epi32(_mm256_srli_epi32(e[i].word, 16),
                                                _mm256_srli_epi32(e[i + 1].word, 16));
      store(batch->half + (2 * g + i) * 8, middle_swapped(upper));
      return upper;
    };
    const auto bits = [](__m256i x) {
      return static_cast<uint32_t>(_mm256_movemask_epi8(middle_swapped(x)));
    };
    const auto lanes = [&](__m256i a, __m256i b, __m256i c, __m256i d) {
      return _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    };
    const auto put = [&](uint16_t* masks, uint32_t both) {
      std::memcpy(masks + g, &both, sizeof(both));
    };
    put(batch->negative, bits(_mm256_packs_epi16(halves(0), halves(2))));
    const __m256i exponents =
        _mm256_packus_epi16(_mm256_packus_epi32(e[0].exponent, e[1].exponent),
                            _mm256_packus_epi32(e[2].exponent, e[3].exponent));
    put(batch->zero, bits(_mm256_cmpeq_epi8(exponents, _mm256_setzero_si256())));
    if constexpr (kCareful) {
      put(batch->any, ~bits(lanes(e[0].any, e[1].any, e[2].any, e[3].any)));
      put(batch->full, ~bits(lanes(e[0].full, e[1].full, e[2].full, e[3].full)));
    }
    return middle_swapped(exponents);
  }

  template <bool kCareful>
  void read(const std::byte* src, Batch* batch) const {
    __m256i small = all(~0u);
    const __m256i a = pair<kCareful>(src, 0, batch, &small);
    const __m256i b = pair<kCareful>(src, 2, batch, &small);
    const __m256i c = pair<kCareful>(src, 4, batch, &small);
    const __m256i d = pair<kCareful>(src, 6, batch, &small);
    const __m256i one = all(0x01010101);
    batch->most = reduce(a, b, c, d, [](auto x, auto y) { return _mm256_max_epu8(x, y); });
    batch->least =
        reduce(_mm256_sub_epi8(a, one), _mm256_sub_epi8(b, one), _mm256_sub_epi8(c, one),
               _mm256_sub_epi8(d, one), [](auto x, auto y) { return _mm256_min_epu8(x, y); });
    if constexpr (!kCareful) {
      const __m256i large = _mm256_cmpeq_epi32(batch->most, all(0xFF));
      const __m256i ordinary = at_least(small, all(kOne - 1));
      batch->special = !_mm256_testc_si256(_mm256_andnot_si256(large, ordinary), all(~0u));
    }
  }

  // Which groups are present.
  template <bool kCareful>
  uint8_t headers(Batch* batch) const {
    const auto masks = [](const uint16_t* from) {
      return _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
    };
    const __m256i none = _mm256_setzero_si256();
    const __m256i zero = masks(batch->zero);
    const __m256i negative = masks(batch->negative);
    const __m256i no_zero = _mm256_cmpeq_epi32(zero, none);
    const __m256i no_negative = _mm256_cmpeq_epi32(negative, none);
    const __m256i no_normal = _mm256_cmpeq_epi32(batch->most, none);
    __m256i absent = _mm256_and_si256(no_normal, no_negative);
    if constexpr (kCareful)
      absent = _mm256_and_si256(absent, _mm256_cmpeq_epi32(masks(batch->any), none));
    // least + 1, less 1 where there is a zero
    const __m256i base = _mm256_andnot_si256(no_normal, _mm256_sub_epi32(batch->least, no_zero));
    // The number of bits of a small integer from the exponent of its float.
    const __m256i range = _mm256_sub_epi32(batch->most, base);
    const __m256i log = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(range)), 23);
    const __m256i width = _mm256_max_epi32(_mm256_sub_epi32(log, all(126)), none);
    const __m256i alike = _mm256_andnot_si256(
        no_negative, _mm256_cmpeq_epi32(negative, _mm256_xor_si256(zero, all(0xFFFF))));
    const __m256i mixed = _mm256_andnot_si256(_mm256_or_si256(alike, no_negative), all(~0u));
    __m256i shape = _mm256_or_si256(width, _mm256_andnot_si256(no_zero, all(kZero)));
    shape = _mm256_or_si256(shape, _mm256_and_si256(mixed, all(kMixed << kSignShift)));
    shape = _mm256_or_si256(shape, _mm256_and_si256(alike, all(kNegative << kSignShift)));
    __m256i planes = _mm256_sub_epi32(_mm256_add_epi32(width, all(m_)), mixed);
    if constexpr (kCareful && !kExact) {
      const __m256i no_full = _mm256_cmpeq_epi32(masks(batch->full), none);
      shape = _mm256_or_si256(shape, _mm256_andnot_si256(no_full, all(kFull)));
      planes = _mm256_add_epi32(planes, _mm256_andnot_si256(no_full, all(F::kDigits - m_)));
    }
    store(batch->header, _mm256_or_si256(base, _mm256_slli_epi32(shape, 8)));
    store(batch->base, base);
    store(batch->mixed, mixed);
    store(batch->size, _mm256_andnot_si256(absent, _mm256_slli_epi32(planes, 1)));
    return static_cast<uint8_t>(~_mm256_movemask_ps(_mm256_castsi256_ps(absent)));
  }

  [[gnu::always_inline]] std::byte* write_planes(const Batch& batch, unsigned g, unsigned fraction,
                                                 std::byte* to) const {
    const __m256i mixed = all(batch.mixed[g]);
    const uint32_t base = batch.base[g] << fraction;
    if (fraction <= kShortDigits) {
      const __m256i word = load(batch.half + g * kGroup);
      const __m256i size = _mm256_and_si256(word, all16(0x7FFF));
      const __m256i zero = _mm256_cmpgt_epi16(all16(0x80), size);
      __m256i code = _mm256_srl_epi16(size, count(kShortDigits - fraction));
      code = _mm256_sub_epi16(code, _mm256_andnot_si256(zero, all16(base)));
      code = _mm256_add_epi16(code, _mm256_and_si256(code, mixed));
      code = _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi16(word, 15), mixed));
      store(to, interleave(middle_swapped(transpose(even_odd(code)))));
    } else {
      const __m256i low = rows(load(batch.word + g * kGroup), mixed, base, fraction);
      const __m256i high = rows(load(batch.word + g * kGroup + 8), mixed, base, fraction);
      const __m256i even = _mm256_unpacklo_epi8(low, high);  // planes 0-7 and 16-23
      const __m256i odd = _mm256_unpackhi_epi8(low, high);
      store(to, _mm256_permute2x128_si256(even, odd, 0x20));
      store(to + 32, _mm256_permute2x128_si256(even, odd, 0x31));
    }
    return to + batch.size[g];
  }

  // The planes of 8 words, a byte each.
  static __m256i rows(__m256i word, __m256i mixed, uint32_t base, unsigned fraction) {
    const __m256i size = _mm256_and_si256(word, all(~kSignBit));
    const __m256i zero = _mm256_cmpgt_epi32(all(kOne), size);
    __m256i code = _mm256_srl_epi32(size, count(kExponentBit - fraction));
    code = _mm256_sub_epi32(code, _mm256_andnot_si256(zero, all(base)));
    code = _mm256_add_epi32(code, _mm256_and_si256(code, mixed));
    code = _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(word, 31), mixed));
    code = _mm256_shuffle_epi8(code, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                         0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
    return transpose(_mm256_permutevar8x32_epi32(code, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }

  unsigned m_;
  uint32_t drop_;
  uint32_t bias_;
  uint32_t half_;
};

// ---- decoder ----------------------------------------------------------------------------------

// Which planes there are, with one for the sign in front in any case: [sign plane][others].
struct alignas(64) Mask {
  uint16_t plane[32];
};
constexpr auto kMasks = [] {
  std::array<std::array<Mask, 32>, 2> masks{};
  for (size_t mixed = 0; mixed < 2; ++mixed)
    for (size_t n = 0; n < 32; ++n)
      for (size_t p = 0; p <= n; ++p) masks[mixed][n].plane[p] = p > 0 || mixed != 0 ? 0xFFFF : 0;
  return masks;
}();

// One group's planes, at `planes`, to its 16 words. Between begin and end all may be read.
template <typename F, bool kMid>
class GroupDecoder {
 public:
  GroupDecoder(const Setting& setting, const std::byte* end) : m_(setting.m), end_(end) {}

  [[gnu::always_inline]] void operator()(unsigned header, const std::byte* planes,
                                         std::byte* dst) const {
    const unsigned shape = header >> 8;
    const bool full = (shape & kFull) != 0;
    const unsigned fraction = full ? F::kDigits : m_;
    const bool mixed = shape >> kSignShift == kMixed;
    const bool negative = shape >> kSignShift == kNegative;
    const Mask& mask = kMasks[mixed][fraction + (shape & kWidth)];
    const std::byte* from = planes - (mixed ? 0 : 2);
    std::byte copy[64];
    if (static_cast<size_t>(end_ - from) < sizeof(copy)) [[unlikely]] {
      std::memcpy(copy, from, static_cast<size_t>(end_ - from));
      from = copy;
    }
    const uint32_t base = (header & 0xFF) << kExponentBit | (negative ? kSignBit : 0);
    const uint32_t always = shape & kZero ? 0 : ~0u;
    const uint32_t half = kMid && !full ? (kOne >> 1) >> m_ : 0;
    if (fraction < kShortDigits || (fraction == kShortDigits && half == 0)) {
      short_group(_mm256_and_si256(load(from), load(mask.plane)), fraction, base, always, half,
                  dst);
    } else if constexpr (!kNarrow<F>) {
      const __m256i low = _mm256_and_si256(load(from), load(mask.plane));
      const __m256i high = _mm256_and_si256(load(from + 32), load(mask.plane + 16));
      const __m256i a = transpose(even_odd(low));   // bytes 0 and 1 of the words
      const __m256i b = transpose(even_odd(high));  // bytes 2 and 3
      store(dst, words(_mm256_unpacklo_epi64(a, b), fraction, base, always, half));
      store(dst + 32, words(_mm256_unpackhi_epi64(a, b), fraction, base, always, half));
    }
  }

 private:
  [[gnu::always_inline]] static void short_group(__m256i planes, unsigned fraction, uint32_t base,
                                                 uint32_t always, uint32_t half, std::byte* dst) {
    const __m256i code = interleave(middle_swapped(transpose(even_odd(planes))));
    const __m256i size =
        _mm256_sll_epi16(_mm256_srli_epi16(code, 1), count(kShortDigits - fraction));
    const __m256i zero = _mm256_andnot_si256(all(always), _mm256_cmpgt_epi16(all16(0x80), size));
    __m256i word = _mm256_or_si256(size, _mm256_slli_epi16(code, 15));
    word = _mm256_add_epi16(word, _mm256_andnot_si256(zero, all16(base >> 16)));
    if constexpr (kMid) {
      const __m256i exponent = _mm256_and_si256(word, all16(kInf >> 16));
      const __m256i none = _mm256_or_si256(_mm256_cmpeq_epi16(exponent, _mm256_setzero_si256()),
                                           _mm256_cmpeq_epi16(exponent, all16(kInf >> 16)));
      word = _mm256_or_si256(word, _mm256_andnot_si256(none, all16(half >> 16)));
    }
    if constexpr (kNarrow<F>) {
      store(dst, word);
    } else {
      const __m256i even = _mm256_unpacklo_epi16(_mm256_setzero_si256(), word);
      const __m256i odd = _mm256_unpackhi_epi16(_mm256_setzero_si256(), word);
      store(dst, _mm256_permute2x128_si256(even, odd, 0x20));
      store(dst + 32, _mm256_permute2x128_si256(even, odd, 0x31));
    }
  }

  // 8 words from their bytes 0, 2, 1 and 3.
  static __m256i words(__m256i bytes, unsigned fraction, uint32_t base, uint32_t always,
                       uint32_t half) {
    const __m256i pairs = interleave(middle_swapped(bytes));  // lower halves, upper halves
    const __m128i low = _mm256_castsi256_si128(pairs);
    const __m128i high = _mm256_extracti128_si256(pairs, 1);
    const __m256i code =
        _mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high));
    const __m256i size =
        _mm256_sll_epi32(_mm256_srli_epi32(code, 1), count(kExponentBit - fraction));
    const __m256i zero = _mm256_andnot_si256(all(always), _mm256_cmpgt_epi32(all(kOne), size));
    __m256i word = _mm256_or_si256(size, _mm256_slli_epi32(code, 31));
    word = _mm256_add_epi32(word, _mm256_andnot_si256(zero, all(base)));
    if constexpr (kMid) {
      const __m256i exponent = _mm256_and_si256(word, all(kInf));
      const __m256i none = _mm256_or_si256(_mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()),
                                           _mm256_cmpeq_epi32(exponent, all(kInf)));
      word = _mm256_or_si256(word, _mm256_andnot_si256(none, all(half)));
    }
    return word;
  }

  unsigned m_;
  const std::byte* end_;
};

template <typename F, bool kMid>
bool decode_lanes(const Setting& setting, const std::byte* src, size_t size, size_t groups,
                  std::byte* dst) {
  Layout<F> layout;
  if (!layout.read(setting, src, size, groups)) return false;
  const GroupDecoder<F, kMid> decode_group(setting, src + size);
  const std::byte* from = src + layout.headers_at;
  const std::byte* planes = src + layout.planes_at;
  constexpr size_t kBytes = kGroup * sizeof(typename F::Word);
  for (size_t g = 0; g < groups; ++g) {
    if (!layout.present(g)) {
      std::memset(dst + g * kBytes, 0, kBytes);
      continue;
    }
    const unsigned header = load16(from);
    from += 2;
    decode_group(header, planes, dst + g * kBytes);
    planes += 2 * planes_of<F>(header >> 8, setting.m);
  }
  return true;
}

// ---- kernel -----------------------------------------------------------------------------------

struct Avx2 : ShortAndSingle<Avx2> {
  template <typename F, bool kNear, bool kFlush, bool kExact>
  static size_t encode(const Setting& setting, const std::byte* src, size_t groups,
                       std::byte* dst) {
    return Encoder<F, kNear, kFlush, kExact>(setting).chunk(src, groups, dst);
  }
  template <typename F, bool kMid>
  static bool decode(const Setting& setting, const std::byte* src, size_t size, size_t groups,
                     std::byte* dst) {
    return decode_lanes<F, kMid>(setting, src, size, groups, dst);
  }
};

}  // namespace

extern const Kernel bx_avx2;
const Kernel bx_avx2 = ChunkKernel<Avx2>::of("avx2", has_avx2);

}  // namespace wirepress
