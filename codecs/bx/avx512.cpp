// SPDX-License-Identifier: Apache-2.0
// A group of 16 values is one register of 32-bit lanes. The 16-bit floats are widened so that their
// exponent begins at bit 23 as that of float32 does; then all three are one code. float64 is
// portable.
//
// Planes and words are transposed in three instructions: a byte permutation that makes 8x8 bit
// matrices, vgf2p8affineqb with the data as the matrix (applied to the unit vectors it is a
// transposition), and a byte permutation. Which plane goes to which bit of the word is up to the
// permutation, so no lane is ever shifted by a number that depends on the header.
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 finds these in its own header, wrongly
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <array>

#include "codecs/bx/kernel.hpp"

namespace wirepress {
namespace {

using namespace bx;

constexpr int kExponentBit = 23;
constexpr uint32_t kOne = 1u << kExponentBit;  // the smallest word with exponent 1
constexpr uint32_t kSignBit = 1u << 31;
constexpr unsigned kBatch = 16;  // groups whose headers are made together

inline __m512i all(uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }

// ---- floats in 32-bit lanes -----------------------------------------------------------------

template <typename F>
constexpr uint32_t kInf = static_cast<uint32_t>(F::kInfinity >> F::kDigits) << kExponentBit;

template <typename F>
inline __m512i load_lanes(const std::byte* from) {
  if constexpr (sizeof(typename F::Word) == 4) {
    return _mm512_loadu_si512(from);
  } else {
    const __m512i word =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    if constexpr (F::kExponentBits == 8) return _mm512_slli_epi32(word, 16);
    const __m512i size = _mm512_and_si512(word, all(0x7FFF));
    const __m512i up = _mm512_slli_epi32(size, kExponentBit - F::kDigits);
    return _mm512_ternarylogic_epi32(all(kSignBit), _mm512_slli_epi32(word, 16), up, 0xCA);
  }
}

template <typename F>
inline void store_lanes(std::byte* to, __m512i word) {
  if constexpr (sizeof(typename F::Word) == 4) {
    _mm512_storeu_si512(to, word);
  } else {
    __m512i down = _mm512_srli_epi32(word, kExponentBit - F::kDigits);
    if constexpr (F::kExponentBits != 8) {
      // A base and an offset that no encoder writes may carry out of the exponent, into the sign.
      const __m512i sign = _mm512_xor_si512(_mm512_srli_epi32(word, 16), down);
      down = _mm512_ternarylogic_epi32(all(0x8000), sign, down, 0xCA);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(down));
  }
}

// ---- transposition ----------------------------------------------------------------------------

// Between the two permutations stand 8x8 matrices: that of byte k of the words of values 8h .. 8h+7
// is quadword 2k + h, its rows last first before vgf2p8affineqb and first first after it.
using Permutation = std::array<uint8_t, 64>;

constexpr size_t row(size_t k, size_t h, size_t r) { return 8 * (2 * k + h) + r; }

constexpr Permutation kWordsToRows = [] {
  Permutation from{};
  for (size_t byte = 0; byte < 64; ++byte) {
    const size_t value = byte / 4;
    from[row(byte % 4, value / 8, 7 - value % 8)] = static_cast<uint8_t>(byte);
  }
  return from;
}();

constexpr Permutation kRowsToWords = [] {
  Permutation from{};
  for (size_t byte = 0; byte < 64; ++byte) {
    const size_t value = byte / 4;
    from[byte] = static_cast<uint8_t>(row(byte % 4, value / 8, value % 8));
  }
  return from;
}();

// For f fraction planes. Planes without a sign plane are loaded as if one stood before them.
struct Planes {
  alignas(64) Permutation from_rows[2];  // [1]: with a sign plane
  alignas(64) Permutation to_rows;
  uint64_t live;  // the rows that some plane goes to
};

constexpr auto kPlanes = [] {
  std::array<Planes, kExponentBit + 1> tables{};
  for (size_t f = 0; f <= kExponentBit; ++f) {
    for (size_t h = 0; h < 2; ++h) {
      for (size_t bit = kExponentBit - f; bit < 32; ++bit) {
        const size_t after = bit - (kExponentBit - f);  // planes before it, but for the sign plane
        const size_t plane = bit == 31 ? 0 : after + 1;
        const size_t to = row(bit / 8, h, 7 - bit % 8);
        tables[f].to_rows[to] = static_cast<uint8_t>(2 * plane + h);
        tables[f].live |= uint64_t{1} << to;
        const auto from = static_cast<uint8_t>(row(bit / 8, h, bit % 8));
        tables[f].from_rows[1][2 * plane + h] = from;
        if (bit != 31) tables[f].from_rows[0][2 * after + h] = from;
      }
    }
  }
  return tables;
}();

inline __m512i load_table(const Permutation& table) { return _mm512_loadu_si512(table.data()); }

inline __m512i transpose_rows(__m512i rows) {
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201));
  return _mm512_gf2p8affine_epi64_epi8(units, rows, 0);
}

// ---- encoder ----------------------------------------------------------------------------------

// The bytes of 16 registers, each with 4 bytes of each of 4 groups, reduced to one 32-bit lane a
// group. `join` is the minimum or the maximum.
template <typename Join>
inline __m512i reduce(__m512i a, __m512i b, __m512i c, __m512i d, Join join) {
  const __m512i ab = join(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xEE));
  const __m512i cd = join(_mm512_shuffle_i64x2(c, d, 0x44), _mm512_shuffle_i64x2(c, d, 0xEE));
  __m512i all4 = join(_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xDD));
  all4 = join(all4, _mm512_srli_epi32(all4, 16));
  all4 = join(all4, _mm512_srli_epi32(all4, 8));
  return _mm512_and_si512(all4, all(0xFF));
}

// 16 groups on their way. One batch is read before the one before it is finished: its masks are
// stored one by one and loaded together, which is slow too soon after.
struct Batch {
  alignas(64) uint32_t word[kBatch * kGroup];  // quantised, as the lanes above
  alignas(64) uint32_t base[kBatch];           // where it stands in the word
  alignas(64) uint32_t info[kBatch];           // fraction planes << 16 | sign plane << 8 | size
  alignas(32) uint16_t zero[kBatch];           // the values with exponent 0, a bit each
  alignas(32) uint16_t negative[kBatch];
  alignas(32) uint16_t any[kBatch];   // the values that are not +0; where `zero` does not tell
  alignas(32) uint16_t full[kBatch];  // the denormals; as `any`
  __m512i least;                      // exponent - 1, 255 where it is 0
  __m512i most;
  bool special;  // the quick quantiser does not know some value
};

// kExact: fractions are whole and nothing is flushed. Else the quick quantiser knows only ordinary
// numbers and zeros, and a batch with others is read again by the careful one.
template <typename F, bool kNear, bool kFlush, bool kExact>
class Encoder {
 public:
  explicit Encoder(const Setting& setting)
      : m_(setting.m),
        drop_((kOne - 1) >> setting.m),
        bias_(kNear ? drop_ >> 1 : 0),
        half_(setting.round == kMidpoint && setting.m < F::kDigits ? drop_ - (drop_ >> 1) : 0),
        tie_shift_(kExponentBit - setting.m) {}

  size_t chunk(const std::byte* src, size_t groups, std::byte* dst) const {
    constexpr size_t kBytes = kBatch * kGroup * sizeof(typename F::Word);
    const size_t n = (groups + kBatch - 1) / kBatch;
    Batch batch[2];
    uint16_t bitmap[kChunkGroups / kBatch];
    uint16_t header[kChunkGroups + kBatch];
    size_t present = 0;
    const bool short_planes = m_ + 1 + F::kExponentBits <= 16;
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
        bitmap[i] = headers<true>(&now, header + present);
      } else {
        bitmap[i] = headers<kExact>(&now, header + present);
      }
      present += static_cast<size_t>(_mm_popcnt_u32(bitmap[i]));
      if (bitmap[i] == 0) continue;
      to = short_planes && !special ? write_planes<true>(now, to) : write_planes<false>(now, to);
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
  // The size of x, quantised; the bits below the m kept ones are anything.
  __m512i quick(__m512i size) const {
    if constexpr (!kNear) return size;
    const __m512i odd = _mm512_and_si512(_mm512_srlv_epi32(size, all(tie_shift_)), all(1));
    return _mm512_add_epi32(_mm512_add_epi32(size, all(bias_)), odd);
  }

  // The size of any x, quantised.
  __m512i careful(__m512i size) const {
    const __m512i cut = _mm512_andnot_si512(all(drop_), size);
    __m512i kept = _mm512_andnot_si512(all(drop_), quick(size));
    kept = _mm512_mask_mov_epi32(kept, _mm512_cmpge_epu32_mask(kept, all(kInf<F>)), cut);
    const __mmask16 nan = _mm512_cmpgt_epu32_mask(size, all(kInf<F>));
    const __mmask16 lost = _mm512_mask_cmpeq_epu32_mask(nan, kept, all(kInf<F>));
    kept = _mm512_mask_or_epi32(kept, lost, kept, all(kOne >> 1));
    const __mmask16 number = _mm512_cmplt_epu32_mask(size, all(kInf<F>));
    kept = _mm512_mask_or_epi32(kept, number, kept, all(half_));
    return _mm512_mask_mov_epi32(kept, _mm512_cmplt_epu32_mask(size, all(kOne)), size);
  }

  template <bool kCareful>
  void read(const std::byte* src, Batch* batch) const {
    __m512i small = all(~0u);
    const auto exponents = [&](unsigned g) __attribute__((always_inline)) {
      const __m512i a = group<kCareful>(src, g, batch, &small);
      const __m512i b = group<kCareful>(src, g + 1, batch, &small);
      const __m512i c = group<kCareful>(src, g + 2, batch, &small);
      const __m512i d = group<kCareful>(src, g + 3, batch, &small);
      return _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    };
    const __m512i e0 = exponents(0), e1 = exponents(4), e2 = exponents(8), e3 = exponents(12);
    const __m512i one = all(0x01010101);
    batch->most = reduce(e0, e1, e2, e3, [](auto a, auto b) { return _mm512_max_epu8(a, b); });
    batch->least =
        reduce(_mm512_sub_epi8(e0, one), _mm512_sub_epi8(e1, one), _mm512_sub_epi8(e2, one),
               _mm512_sub_epi8(e3, one), [](auto a, auto b) { return _mm512_min_epu8(a, b); });
    if constexpr (!kCareful) {
      const __mmask16 large = _mm512_cmpge_epu32_mask(batch->most, all(kInf<F> >> kExponentBit));
      const __mmask16 denormal = _mm512_cmplt_epu32_mask(small, all(kOne - 1));
      batch->special = _mm512_kortestz(large, denormal) == 0;
    }
  }

  // One group's words and masks. Its exponents; `small` becomes the least of sizes less 1.
  template <bool kCareful>
  [[gnu::always_inline]] __m512i group(const std::byte* src, unsigned g, Batch* batch,
                                       __m512i* small) const {
    __m512i x = load_lanes<F>(src + g * kGroup * sizeof(typename F::Word));
    __m512i size = _mm512_and_si512(x, all(~kSignBit));
    if constexpr (kFlush) {
      const __mmask16 keep = _mm512_cmpge_epu32_mask(size, all(kOne));
      x = _mm512_maskz_mov_epi32(keep, x);
      size = _mm512_maskz_mov_epi32(keep, size);
    }
    const __m512i q = kExact ? size : kCareful ? careful(size) : quick(size);
    batch->negative[g] = _mm512_movepi32_mask(x);
    batch->zero[g] = _mm512_testn_epi32_mask(q, all(0xFF * kOne));
    if constexpr (kCareful) batch->any[g] = _mm512_test_epi32_mask(x, x);
    const __m512i less = _mm512_sub_epi32(size, all(1));
    if constexpr (kCareful && !kExact)
      batch->full[g] = _mm512_cmplt_epu32_mask(less, all(kOne - 1));
    if constexpr (!kCareful && !kFlush) *small = _mm512_min_epu32(*small, less);
    const __m512i word = _mm512_ternarylogic_epi32(all(kSignBit), x, q, 0xCA);
    _mm512_store_si512(batch->word + g * kGroup, word);
    return _mm512_srli_epi32(q, kExponentBit);
  }

  // Writes the headers of the present groups, and says which are.
  template <bool kCareful>
  uint16_t headers(Batch* batch, uint16_t* to) const {
    const auto load = [](const uint16_t* from) {
      return _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
    };
    const __m512i zero = load(batch->zero);
    const __m512i negative = load(batch->negative);
    const __mmask16 has_zero = _mm512_test_epi32_mask(zero, zero);
    const __mmask16 has_negative = _mm512_test_epi32_mask(negative, negative);
    const __mmask16 has_normal = _mm512_test_epi32_mask(batch->most, batch->most);
    __mmask16 present = _kor_mask16(has_normal, has_negative);
    if constexpr (kCareful) {
      const __m512i any = load(batch->any);
      present = _kor_mask16(present, _mm512_test_epi32_mask(any, any));
    }
    // least + 1, less 1 where there is a zero
    __m512i base =
        _mm512_mask_add_epi32(batch->least, _knot_mask16(has_zero), batch->least, all(1));
    base = _mm512_maskz_mov_epi32(has_normal, base);
    const __m512i width =
        _mm512_sub_epi32(all(32), _mm512_lzcnt_epi32(_mm512_sub_epi32(batch->most, base)));
    const __mmask16 alike =
        _mm512_mask_cmpeq_epi32_mask(has_negative, negative, _mm512_xor_si512(zero, all(0xFFFF)));
    const __mmask16 mixed = _kandn_mask16(alike, has_negative);
    __m512i shape = _mm512_mask_or_epi32(width, has_zero, width, all(kZero));
    shape = _mm512_mask_or_epi32(shape, mixed, shape, all(kMixed << kSignShift));
    shape = _mm512_mask_or_epi32(shape, alike, shape, all(kNegative << kSignShift));
    __m512i planes = _mm512_add_epi32(width, all(m_));
    planes = _mm512_mask_add_epi32(planes, mixed, planes, all(1));
    __m512i info = _mm512_add_epi32(_mm512_add_epi32(planes, planes), all(m_ << 16));
    info = _mm512_mask_or_epi32(info, mixed, info, all(0x100));
    if constexpr (kCareful && !kExact) {
      const __m512i bits = load(batch->full);
      const __mmask16 full = _mm512_test_epi32_mask(bits, bits);
      shape = _mm512_mask_or_epi32(shape, full, shape, all(kFull));
      info = _mm512_mask_add_epi32(info, full, info, all((F::kDigits - m_) * 0x10002));
    }
    _mm512_store_si512(batch->info, _mm512_maskz_mov_epi32(present, info));
    _mm512_store_si512(batch->base, _mm512_slli_epi32(base, kExponentBit));
    const __m512i header = _mm512_or_si512(base, _mm512_slli_epi32(shape, 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_maskz_compress_epi16(present, _mm512_cvtepi32_epi16(header)));
    return present;
  }

  // Of absent groups no bytes: the next one is written over them. kShort: at most 16 planes.
  template <bool kShort>
  std::byte* write_planes(const Batch& batch, std::byte* to) const {
    const __m512i to_rows = load_table(kWordsToRows);
    for (unsigned g = 0; g < kBatch; ++g) {
      const uint32_t info = batch.info[g];
      __m512i word = _mm512_load_si512(batch.word + g * kGroup);
      const __mmask16 normal = _knot_mask16(batch.zero[g]);
      word = _mm512_mask_sub_epi32(word, normal, word, all(batch.base[g]));
      const Permutation& table = kPlanes[info >> 16].from_rows[info >> 8 & 1];
      word = transpose_rows(_mm512_permutexvar_epi8(to_rows, word));
      word = _mm512_permutexvar_epi8(load_table(table), word);
      if constexpr (kShort) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(word));
      } else {
        _mm512_storeu_si512(to, word);
      }
      to += info & 0xFF;
    }
    return to;
  }

  unsigned m_;
  uint32_t drop_;
  uint32_t bias_;
  uint32_t half_;
  uint32_t tie_shift_;
};

// ---- decoder ----------------------------------------------------------------------------------

// What the headers of a chunk say, by group.
struct Groups {
  alignas(64) uint32_t load[kChunkGroups];  // the planes that are there; bit 0: sign
  alignas(64) uint32_t base[kChunkGroups];  // what is added to a word
  // Where its planes begin, or would if there were a sign plane.
  alignas(64) int32_t at[kChunkGroups];
  alignas(64) uint16_t always[kChunkGroups];  // ~0: added to words with exponent 0 too
  uint16_t full[kChunkGroups / kBatch];
};

inline __m512i prefix_sums(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

template <typename F>
class Decoder {
 public:
  explicit Decoder(const Setting& setting) : m_(setting.m) {}

  // False: corrupt. `*any_full`: some group has all fraction bits.
  bool lay_out(const std::byte* src, size_t size, size_t groups, Groups* layout, bool* any_full,
               const std::byte** planes) const {
    uint16_t bitmap[kChunkGroups / kBatch];
    size_t at = kHeadSize;
    if (load16(src) & kDense) {
      std::fill(bitmap, bitmap + groups / 16, uint16_t{0xFFFF});
      if (groups % 16) bitmap[groups / 16] = static_cast<uint16_t>((1u << groups % 16) - 1);
    } else {
      at += bitmap_size(groups);
      if (size < at) return false;
      std::memcpy(bitmap, src + kHeadSize, at - kHeadSize);
      if (groups % 16 && bitmap[groups / 16] >> groups % 16) return false;
    }
    const size_t end = (groups + 15) / 16;
    size_t present = 0;
    for (size_t i = 0; i < end; ++i) present += static_cast<size_t>(_mm_popcnt_u32(bitmap[i]));
    if (size < at + 2 * present) return false;
    __m512i sum = _mm512_setzero_si512();
    unsigned bad = 0, full = 0;
    for (size_t i = 0; i < end; ++i) {
      bad |= headers(src + at, bitmap[i], i, layout, &sum);
      full |= layout->full[i];
      at += 2 * static_cast<size_t>(_mm_popcnt_u32(bitmap[i]));
    }
    *any_full = full != 0;
    *planes = src + at;
    const auto planes_size = static_cast<size_t>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum)));
    return bad == 0 && size == at + planes_size;
  }

  template <bool kMid, bool kShort>
  void words(const Groups& layout, const std::byte* planes, size_t begin, size_t end, unsigned full,
             std::byte* dst) const {
    const Planes& table = kPlanes[full ? F::kDigits : m_];
    const __m512i to_rows = load_table(table.to_rows);
    const __m512i to_words = load_table(kRowsToWords);
    const __mmask64 live = table.live;
    const __m512i exponent = all(kInf<F>);
    const __m512i half = all(full ? 0 : (kOne >> 1) >> m_);
    for (size_t g = begin; g < end; ++g) {
      const __mmask32 load = layout.load[g];
      const std::byte* from = planes + layout.at[g];
      __m512i word;
      if constexpr (kShort) {
        // Zeros above, since rows that are not there are taken from there.
        word = _mm512_zextsi256_si512(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(load), from));
      } else {
        word = _mm512_maskz_loadu_epi16(load, from);
      }
      word = transpose_rows(_mm512_maskz_permutexvar_epi8(live, to_rows, word));
      word = _mm512_permutexvar_epi8(to_words, word);
      const __mmask16 normal =
          _kor_mask16(_mm512_test_epi32_mask(word, exponent), layout.always[g]);
      word = _mm512_mask_add_epi32(word, normal, word, all(layout.base[g]));
      if constexpr (kMid) {
        const __mmask16 finite = _mm512_mask_cmpneq_epi32_mask(
            _mm512_test_epi32_mask(word, exponent), _mm512_and_si512(word, exponent), exponent);
        word = _mm512_mask_or_epi32(word, finite, word, half);
      }
      store_lanes<F>(dst + g * kGroup * sizeof(typename F::Word), word);
    }
  }

 private:
  // One batch: which of its headers are not good.
  unsigned headers(const std::byte* from, uint16_t present, size_t batch, Groups* layout,
                   __m512i* sum) const {
    const __mmask16 there = static_cast<__mmask16>((1u << _mm_popcnt_u32(present)) - 1);
    const __m256i packed = _mm256_maskz_loadu_epi16(there, from);
    const __m512i header = _mm512_cvtepu16_epi32(_mm256_maskz_expand_epi16(present, packed));
    const __m512i base = _mm512_and_si512(header, all(0xFF));
    const __m512i width = _mm512_and_si512(_mm512_srli_epi32(header, 8), all(kWidth));
    const __mmask16 zero = _mm512_test_epi32_mask(header, all(kZero << 8));
    const __mmask16 full = _mm512_test_epi32_mask(header, all(kFull << 8));
    const __mmask16 minus = _mm512_test_epi32_mask(header, all(kNegative << kSignShift << 8));
    const __mmask16 mixed = _mm512_test_epi32_mask(header, all(kMixed << kSignShift << 8));
    unsigned bad =
        _kand_mask16(minus, mixed) | _mm512_cmpgt_epu32_mask(width, all(F::kExponentBits));
    if (F::kExponentBits < 8)
      bad |= _mm512_cmpgt_epu32_mask(base, all((1u << F::kExponentBits) - 1));
    if (m_ == F::kDigits) bad |= full;

    __m512i n = _mm512_add_epi32(width, all(m_));
    n = _mm512_mask_add_epi32(n, full, n, all(F::kDigits - m_));
    __m512i load = _mm512_sub_epi32(_mm512_sllv_epi32(all(2), n), all(2));
    load = _mm512_mask_add_epi32(load, mixed, load, all(1));
    _mm512_store_si512(layout->load + 16 * batch, _mm512_maskz_mov_epi32(present, load));
    n = _mm512_mask_add_epi32(n, mixed, n, all(1));
    const __m512i sizes = _mm512_maskz_slli_epi32(present, n, 1);
    const __m512i ends = _mm512_add_epi32(prefix_sums(sizes), *sum);
    __m512i at = _mm512_sub_epi32(ends, sizes);
    at = _mm512_mask_sub_epi32(at, _knot_mask16(mixed), at, all(2));
    _mm512_store_si512(layout->at + 16 * batch, at);
    *sum = _mm512_permutexvar_epi32(all(15), ends);
    __m512i add = _mm512_slli_epi32(base, kExponentBit);
    add = _mm512_mask_or_epi32(add, minus, add, all(kSignBit));
    _mm512_store_si512(layout->base + 16 * batch, add);
    _mm256_store_si256(reinterpret_cast<__m256i*>(layout->always + 16 * batch),
                       _mm256_movm_epi16(_knot_mask16(zero)));
    layout->full[batch] = full;
    return bad;
  }

  unsigned m_;
};

template <typename F, bool kMid>
bool decode_lanes(const Setting& setting, const std::byte* src, size_t size, size_t groups,
                  std::byte* dst) {
  const Decoder<F> decoder(setting);
  Groups layout;
  bool any_full = false;
  const std::byte* planes = nullptr;
  if (!decoder.lay_out(src, size, groups, &layout, &any_full, &planes)) return false;
  if (!any_full) [[likely]] {
    if (setting.m + 1 + F::kExponentBits <= 16) {
      decoder.template words<kMid, true>(layout, planes, 0, groups, 0, dst);
    } else {
      decoder.template words<kMid, false>(layout, planes, 0, groups, 0, dst);
    }
    return true;
  }
  for (size_t g = 0; g < groups;) {  // runs of groups that are alike in this
    const auto full = [&](size_t i) { return layout.full[i / kBatch] >> i % kBatch & 1u; };
    size_t end = g + 1;
    while (end < groups && full(end) == full(g)) ++end;
    decoder.template words<kMid, false>(layout, planes, g, end, full(g), dst);
    g = end;
  }
  return true;
}

// ---- float64 ----------------------------------------------------------------------------------

constexpr int kExponentBit64 = 52;
constexpr uint64_t kOne64 = uint64_t{1} << kExponentBit64;
constexpr uint64_t kInf64 = 0x7FF * kOne64;
constexpr uint64_t kSignBit64 = uint64_t{1} << 63;

inline __m512i all64(uint64_t word) { return _mm512_set1_epi64(static_cast<long long>(word)); }

// Byte i of quadword j changes places with byte j of quadword i, the latter counted from the last
// byte where rows are for vgf2p8affineqb.
constexpr Permutation bytes_transposed(bool last_first) {
  Permutation from{};
  for (size_t k = 0; k < 8; ++k)
    for (size_t i = 0; i < 8; ++i)
      from[8 * k + (last_first ? 7 - i : i)] = static_cast<uint8_t>(8 * i + k);
  return from;
}
constexpr Permutation kWordsToRows64 = bytes_transposed(true);
constexpr Permutation kRowsToWords64 = bytes_transposed(false);

// Of two registers: planes 32h .. 32h+31 from their bytes for values 0-7 and for values 8-15.
constexpr auto kRowsToPlanes64 = [] {
  std::array<Permutation, 2> from{};
  for (size_t h = 0; h < 2; ++h) {
    for (size_t p = 0; p < 32; ++p) {
      from[h][2 * p] = static_cast<uint8_t>(32 * h + p);
      from[h][2 * p + 1] = static_cast<uint8_t>(64 + 32 * h + p);
    }
  }
  return from;
}();

// Of two registers with all planes: the rows for values 8h .. 8h+7.
constexpr auto kPlanesToRows64 = [] {
  std::array<Permutation, 2> from{};
  for (size_t h = 0; h < 2; ++h)
    for (size_t p = 0; p < 64; ++p)
      from[h][8 * (p / 8) + 7 - p % 8] = static_cast<uint8_t>(2 * p + h);
  return from;
}();

// One half of a group in the encoder.
struct Half64 {
  __m512i x;
  __m512i size;  // of x, then of the quantised word; the sign is that of x

  __mmask8 negative() const { return _mm512_movepi64_mask(x); }
  __mmask8 zero() const { return _mm512_testn_epi64_mask(size, all64(kInf64)); }
  __mmask8 any() const { return _mm512_test_epi64_mask(x, x); }
  __mmask8 denormal() const {
    return _mm512_cmplt_epu64_mask(_mm512_sub_epi64(size, all64(1)), all64(kOne64 - 1));
  }
};

class Encoder64 {
 public:
  explicit Encoder64(const Setting& setting)
      : m_(setting.m),
        exact_(setting.m == kExponentBit64),
        near_(setting.round == kNearest && !exact_),
        flush_(setting.flush),
        drop_((kOne64 - 1) >> setting.m),
        bias_(near_ ? drop_ >> 1 : 0),
        half_(setting.round == kMidpoint && !exact_ ? drop_ - (drop_ >> 1) : 0) {}

  size_t chunk(const std::byte* src, size_t groups, std::byte* dst) const {
    uint16_t bitmap[kChunkGroups / 16] = {};
    uint32_t header[kChunkGroups];
    size_t present = 0;
    // Planes are written to where they belong in a dense chunk.
    std::byte* const planes = dst + kHeadSize + 4 * groups;
    std::byte* to = planes;
    for (size_t g = 0; g < groups; ++g) {
      GroupHeader head;
      to = group(src + g * 8 * kGroup, &head, to);
      header[present] = head.base | head.shape << Float64::kShapeShift;
      present += head.present;
      bitmap[g / 16] = static_cast<uint16_t>(bitmap[g / 16] | head.present << g % 16);
    }
    const size_t planes_size = static_cast<size_t>(to - planes);
    std::byte* at = dst + kHeadSize;
    if (present != groups) {
      const size_t before = present != 0 ? bitmap_size(groups) : 0;
      std::memmove(at + before + 4 * present, planes, planes_size);
      std::memcpy(at, bitmap, before);
      at += before;
    }
    std::memcpy(at, header, 4 * present);
    const size_t size = static_cast<size_t>(at - dst) + 4 * present + planes_size;
    store16(dst, chunk_head(size - kHeadSize, present, groups));
    return size;
  }

 private:
  static unsigned both(__mmask8 low, __mmask8 high) { return low | unsigned{high} << 8; }

  __m512i quick(__m512i size) const {
    const __m512i odd = _mm512_maskz_and_epi64(
        near_ ? 0xFF : 0, _mm512_srlv_epi64(size, all64(kExponentBit64 - m_)), all64(1));
    return _mm512_add_epi64(_mm512_add_epi64(size, all64(bias_)), odd);
  }

  __m512i careful(__m512i size) const {
    const __m512i inf = all64(kInf64);
    const __m512i cut = _mm512_andnot_si512(all64(drop_), size);
    __m512i kept = _mm512_andnot_si512(all64(drop_), quick(size));
    kept = _mm512_mask_mov_epi64(kept, _mm512_cmpge_epu64_mask(kept, inf), cut);
    const __mmask8 nan = _mm512_cmpgt_epu64_mask(size, inf);
    const __mmask8 lost = _mm512_mask_cmpeq_epu64_mask(nan, kept, inf);
    kept = _mm512_mask_or_epi64(kept, lost, kept, all64(kOne64 >> 1));
    const __mmask8 number = _mm512_cmplt_epu64_mask(size, inf);
    kept = _mm512_mask_or_epi64(kept, number, kept, all64(half_));
    return _mm512_mask_mov_epi64(kept, _mm512_cmplt_epu64_mask(size, all64(kOne64)), size);
  }

  Half64 load(const std::byte* src) const {
    Half64 half = {_mm512_loadu_si512(src), {}};
    half.size = _mm512_and_si512(half.x, all64(~kSignBit64));
    if (flush_) {
      const __mmask8 keep = _mm512_cmpge_epu64_mask(half.size, all64(kOne64));
      half.x = _mm512_maskz_mov_epi64(keep, half.x);
      half.size = _mm512_maskz_mov_epi64(keep, half.size);
    }
    return half;
  }

  // Where the planes of the next group go.
  std::byte* group(const std::byte* src, GroupHeader* header, std::byte* to) const {
    Half64 low = load(src), high = load(src + 64);
    const bool full = !exact_ && both(low.denormal(), high.denormal()) != 0;
    if (both(low.any(), high.any()) == 0) return to;
    const Half64 raw_low = low, raw_high = high;
    low.size = quick(low.size);
    high.size = quick(high.size);
    const uint64_t largest = _mm512_reduce_max_epu64(_mm512_max_epu64(low.size, high.size));
    unsigned most = static_cast<unsigned>(largest >> kExponentBit64);
    if (!exact_ && (full || most >= 0x7FF)) [[unlikely]] {
      low.size = careful(raw_low.size);
      high.size = careful(raw_high.size);
      most = static_cast<unsigned>(_mm512_reduce_max_epu64(_mm512_max_epu64(low.size, high.size)) >>
                                   kExponentBit64);
    }
    const __m512i one = all64(kOne64);  // words below it become the largest
    const uint64_t less = _mm512_reduce_min_epu64(
        _mm512_min_epu64(_mm512_sub_epi64(_mm512_andnot_si512(all64(kOne64 - 1), low.size), one),
                         _mm512_sub_epi64(_mm512_andnot_si512(all64(kOne64 - 1), high.size), one)));
    const unsigned zero = both(low.zero(), high.zero());
    const unsigned negative = both(low.negative(), high.negative());
    const unsigned sign = negative == 0                  ? kPositive
                          : negative == (~zero & 0xFFFF) ? kNegative
                                                         : kMixed;
    if (most != 0)
      header->base = static_cast<unsigned>(less >> kExponentBit64) + (zero == 0 ? 1 : 0);
    header->shape = static_cast<unsigned>(std::bit_width(most - header->base)) |
                    (zero != 0 ? kZero : 0) | (full ? kFull : 0) | sign << kSignShift;
    header->present = true;
    const unsigned n = planes_of<Float64>(header->shape, m_);
    const unsigned fraction = full ? kExponentBit64 : m_;
    const __m512i a = rows(low, header->base, fraction, sign == kMixed);
    const __m512i b = rows(high, header->base, fraction, sign == kMixed);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi8(a, load_table(kRowsToPlanes64[0]), b));
    if (n > 32)
      _mm512_storeu_si512(to + 64, _mm512_permutex2var_epi8(a, load_table(kRowsToPlanes64[1]), b));
    return to + 2 * n;
  }

  // The planes of 8 words, a byte each.
  static __m512i rows(const Half64& half, unsigned base, unsigned fraction, bool mixed) {
    const __m512i normal =
        _mm512_maskz_mov_epi64(_knot_mask8(half.zero()), all64(uint64_t{base} << kExponentBit64));
    const __m512i offset = _mm512_sub_epi64(half.size, normal);
    __m512i code = _mm512_srlv_epi64(offset, all64(kExponentBit64 - fraction));
    code = _mm512_sllv_epi64(code, all64(mixed));
    code = _mm512_mask_or_epi64(code, half.negative() & (mixed ? 0xFF : 0), code, all64(1));
    return transpose_rows(_mm512_permutexvar_epi8(load_table(kWordsToRows64), code));
  }

  unsigned m_;
  bool exact_;
  bool near_;
  bool flush_;
  uint64_t drop_;
  uint64_t bias_;
  uint64_t half_;
};

size_t encode_chunk64(const Setting& setting, const std::byte* src, size_t groups, std::byte* dst) {
  return Encoder64(setting).chunk(src, groups, dst);
}

inline __m512i words64(__m512i rows, const GroupHeader& header, unsigned fraction, uint64_t half) {
  const unsigned sign = header.shape >> kSignShift;
  const __m512i code = _mm512_permutexvar_epi8(load_table(kRowsToWords64), transpose_rows(rows));
  const __m512i size = _mm512_sllv_epi64(_mm512_srlv_epi64(code, all64(sign == kMixed)),
                                         all64(kExponentBit64 - fraction));
  const __mmask8 set = _mm512_test_epi64_mask(code, all64(sign == kMixed));
  __m512i word = _mm512_mask_or_epi64(size, set, size, all64(kSignBit64));
  const __mmask8 normal = _mm512_test_epi64_mask(size, all64(kInf64)) |
                          (header.shape & kZero ? __mmask8{0} : __mmask8{0xFF});
  const uint64_t base =
      uint64_t{header.base} << kExponentBit64 | (sign == kNegative ? kSignBit64 : 0);
  word = _mm512_mask_add_epi64(word, normal, word, all64(base));
  const __m512i exponent = _mm512_and_si512(word, all64(kInf64));
  const __mmask8 finite = _mm512_mask_cmpneq_epu64_mask(_mm512_test_epi64_mask(exponent, exponent),
                                                        exponent, all64(kInf64));
  return _mm512_mask_or_epi64(word, finite, word, all64(half));
}

bool decode_chunk64(const Setting& setting, const std::byte* src, size_t size, size_t groups,
                    std::byte* dst) {
  Layout<Float64> layout;
  if (!layout.read(setting, src, size, groups)) return false;
  const std::byte* planes = src + layout.planes_at;
  for (size_t g = 0, next = 0; g < groups; ++g) {
    std::byte* to = dst + g * 8 * kGroup;
    if (!layout.present(g)) {
      std::memset(to, 0, 8 * kGroup);
      continue;
    }
    const GroupHeader header = header_at<Float64>(src + layout.headers_at, next++);
    const bool full = (header.shape & kFull) != 0;
    const unsigned fraction = full ? kExponentBit64 : setting.m;
    const unsigned n = planes_of<Float64>(header.shape, setting.m);
    const uint64_t half = setting.round == kMidpoint && !full ? (kOne64 >> 1) >> setting.m : 0;
    const uint64_t there = n < 64 ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
    const __m512i a = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(there), planes);
    const __m512i b = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(there >> 32), planes + 64);
    const __m512i low = _mm512_permutex2var_epi8(a, load_table(kPlanesToRows64[0]), b);
    const __m512i high = _mm512_permutex2var_epi8(a, load_table(kPlanesToRows64[1]), b);
    _mm512_storeu_si512(to, words64(low, header, fraction, half));
    _mm512_storeu_si512(to + 64, words64(high, header, fraction, half));
    planes += 2 * n;
  }
  return true;
}

// ---- kernel -----------------------------------------------------------------------------------

struct Avx512 {
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
  template <typename F>
  static EncodeChunk encoder(const Setting& setting) {
    if constexpr (std::is_same_v<F, Float64>)
      return encode_chunk64;
    else
      return encoder_form<Avx512, F>(setting);
  }
  template <typename F>
  static DecodeChunk decoder(const Setting& setting) {
    if constexpr (std::is_same_v<F, Float64>)
      return decode_chunk64;
    else
      return decoder_form<Avx512, F>(setting);
  }
};

}  // namespace

extern const Kernel bx_avx512;
const Kernel bx_avx512 = ChunkKernel<Avx512>::of("avx512", has_avx512);

}  // namespace wirepress
