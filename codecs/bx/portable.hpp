// SPDX-License-Identifier: Apache-2.0
// Chunks in plain C++, for every float type: the reference kernel, and what the others use where
// they have nothing faster. Read spec.md first.
#pragma once

#include <bit>

#include "codecs/bx/bx.hpp"

namespace wirepress::bx {

// Byte i of x is row i; bit j of row i changes places with bit i of row j.
static constexpr uint64_t transpose8(uint64_t x) {
  uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

// Plane p has bit p of all codes, that of code i at bit i.
template <typename Code>
WPR_HD static inline void write_planes(const Code* code, unsigned planes, std::byte* to) {
  for (unsigned k = 0; k < planes; k += 8) {
    uint64_t low = 0, high = 0;
    WPR_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      low |= uint64_t{code[i] >> k & 0xFF} << 8 * i;
      high |= uint64_t{code[i + 8] >> k & 0xFF} << 8 * i;
    }
    low = transpose8(low);
    high = transpose8(high);
    for (unsigned p = k; p < planes && p < k + 8; ++p, low >>= 8, high >>= 8)
      store16(to + 2 * p, (low & 0xFF) | (high & 0xFF) << 8);
  }
}

template <typename Code>
WPR_HD static inline void read_planes(const std::byte* from, unsigned planes, Code* code) {
  WPR_UNROLL
  for (unsigned i = 0; i < kGroup; ++i) code[i] = 0;
  for (unsigned k = 0; k < planes; k += 8) {
    uint64_t low = 0, high = 0;
    for (unsigned p = k; p < planes && p < k + 8; ++p) {
      const uint64_t plane = load16(from + 2 * p);
      low |= (plane & 0xFF) << 8 * (p - k);
      high |= (plane >> 8) << 8 * (p - k);
    }
    low = transpose8(low);
    high = transpose8(high);
    WPR_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      code[i] |= static_cast<Code>(low >> 8 * i & 0xFF) << k;
      code[i + 8] |= static_cast<Code>(high >> 8 * i & 0xFF) << k;
    }
  }
}

// What a group's header says of its 16 quantised words.
struct GroupHeader {
  unsigned base = 0;
  unsigned shape = 0;
  bool present = false;  // not all words are +0
};

template <typename F>
static constexpr GroupHeader describe(const typename F::Word* q, unsigned m) {
  // `less` is the least exponent but 0, less 1. No branches: zeros may be anywhere.
  unsigned less = ~0u, most = 0, negative = 0, zero = 0;
  typename F::Word any = 0, small_fraction = 0;
  WPR_UNROLL
  for (unsigned i = 0; i < kGroup; ++i) {
    const unsigned exponent = static_cast<unsigned>((q[i] & F::kInfinity) >> F::kDigits);
    any |= q[i];
    negative |= static_cast<unsigned>((q[i] & F::kSign) != 0) << i;
    zero |= static_cast<unsigned>(exponent == 0) << i;
    most = most > exponent ? most : exponent;
    less = less < exponent - 1 ? less : exponent - 1;
    small_fraction |= exponent == 0 ? q[i] & F::kFraction : 0;
  }
  GroupHeader header;
  header.present = any != 0;
  if (most > 0) header.base = less + (zero == 0);
  header.shape = static_cast<unsigned>(std::bit_width(most - header.base));
  if (zero != 0) header.shape |= kZero;
  if (small_fraction != 0 && m < F::kDigits) header.shape |= kFull;
  const unsigned sign = negative == 0                  ? kPositive
                        : negative == (~zero & 0xFFFF) ? kNegative
                                                       : kMixed;
  header.shape |= sign << kSignShift;
  return header;
}

template <typename F>
static constexpr typename F::Header header_word(const GroupHeader& header) {
  return static_cast<typename F::Header>(header.base | header.shape << F::kShapeShift);
}

template <typename F>
using CodeOf = std::conditional_t<(sizeof(typename F::Word) > 4), uint64_t, uint32_t>;

// The planes of a group's quantised words.
template <typename F>
WPR_HD static inline void encode_group(const Setting& setting, const GroupHeader& header,
                                       const typename F::Word* q, std::byte* to) {
  using Code = CodeOf<F>;
  const unsigned drop = header.shape & kFull ? 0 : F::kDigits - setting.m;
  const Code base = Code{header.base} << F::kDigits;
  const Code sign_plane = header.shape >> kSignShift == kMixed ? 1 : 0;
  Code code[kGroup];
  WPR_UNROLL
  for (unsigned i = 0; i < kGroup; ++i) {
    const Code word = q[i];
    const Code size = word & (Code{F::kSign} - 1);
    const Code offset = size - ((word & F::kInfinity) != 0 ? base : 0);
    const Code sign = word >> (8 * sizeof(typename F::Word) - 1);
    code[i] = offset >> drop << sign_plane | (sign & sign_plane);
  }
  write_planes(code, planes_of<F>(header.shape, setting.m), to);
}

template <typename F>
static size_t encode_chunk(const Setting& setting, const std::byte* src, size_t groups,
                           std::byte* dst) {
  using Word = typename F::Word;
  using Header = typename F::Header;
  const Quantiser<F> quantise(setting);
  Word q[kChunk];
  GroupHeader header[kChunkGroups];
  size_t present = 0;
  for (size_t g = 0; g < groups; ++g) {
    Word* words = q + g * kGroup;
    std::memcpy(words, src + g * kGroup * sizeof(Word), kGroup * sizeof(Word));
    for (unsigned i = 0; i < kGroup; ++i) words[i] = quantise(words[i]);
    header[g] = describe<F>(words, setting.m);
    present += header[g].present;
  }
  std::byte* to = dst + kHeadSize;
  if (present != 0 && present != groups) {
    for (size_t g = 0; g < groups; g += 16, to += 2) {
      size_t bits = 0;
      for (size_t i = g; i < std::min(groups, g + 16); ++i)
        bits |= size_t{header[i].present} << (i - g);
      store16(to, bits);
    }
  }
  for (size_t g = 0; g < groups; ++g) {
    if (!header[g].present) continue;
    const Header word = header_word<F>(header[g]);
    std::memcpy(to, &word, sizeof(word));
    to += sizeof(word);
  }
  for (size_t g = 0; g < groups; ++g) {
    if (!header[g].present) continue;
    encode_group<F>(setting, header[g], q + g * kGroup, to);
    to += 2 * planes_of<F>(header[g].shape, setting.m);
  }
  const size_t size = static_cast<size_t>(to - dst);
  store16(dst, chunk_head(size - kHeadSize, present, groups));
  return size;
}

template <typename F>
static constexpr GroupHeader header_of(typename F::Header word) {
  return {word & ((1u << F::kShapeShift) - 1), static_cast<unsigned>(word >> F::kShapeShift), true};
}
template <typename F>
static inline GroupHeader header_at(const std::byte* headers, size_t i) {
  typename F::Header word;
  std::memcpy(&word, headers + i * sizeof(word), sizeof(word));
  return header_of<F>(word);
}

// A header that an encoder may write, by its own bits alone.
template <typename F>
static constexpr bool good_header(unsigned base, unsigned shape, unsigned m) {
  return base <= F::kInfinity >> F::kDigits && shape <= 0xFF &&
         (shape & kWidth) <= F::kExponentBits && shape >> kSignShift <= kMixed &&
         ((shape & kFull) == 0 || m < F::kDigits);
}

template <typename F>
WPR_HD static inline void decode_group(const Setting& setting, const GroupHeader& header,
                                       const std::byte* planes, typename F::Word* words) {
  using Word = typename F::Word;
  using Code = CodeOf<F>;
  const unsigned shape = header.shape;
  const unsigned drop = shape & kFull ? 0 : F::kDigits - setting.m;
  const bool mixed = shape >> kSignShift == kMixed;
  const Word base = static_cast<Word>((static_cast<Word>(header.base) << F::kDigits) |
                                      (shape >> kSignShift == kNegative ? F::kSign : 0));
  const Word half = setting.round == kMidpoint && drop > 0 ? Word{1} << (drop - 1) : 0;
  Code code[kGroup];
  read_planes(planes, planes_of<F>(shape, setting.m), code);
  const Code sign_plane = mixed ? 1 : 0;
  const bool always = (shape & kZero) == 0;
  WPR_UNROLL
  for (unsigned i = 0; i < kGroup; ++i) {
    Word word = static_cast<Word>(code[i] >> sign_plane << drop);
    word |= static_cast<Word>((code[i] & sign_plane) << (8 * sizeof(Word) - 1));
    word = static_cast<Word>(word + (always || (word & F::kInfinity) != 0 ? base : Word{0}));
    const Word exponent = word & F::kInfinity;
    if (exponent != 0 && exponent != F::kInfinity) word |= half;
    words[i] = word;
  }
}

// Where the parts of a chunk are, checked.
template <typename F>
struct Layout {
  uint16_t bitmap[kChunkGroups / 16];
  size_t headers_at;
  size_t planes_at;

  bool present(size_t g) const { return bitmap[g / 16] >> g % 16 & 1; }

  // False: corrupt.
  bool read(const Setting& setting, const std::byte* src, size_t size, size_t groups) {
    const size_t words = bitmap_size(groups) / 2;
    const unsigned last = groups % 16 ? (1u << groups % 16) - 1 : 0xFFFF;  // bits of the last word
    headers_at = kHeadSize;
    if (load16(src) & kDense) {
      std::fill(bitmap, bitmap + words, uint16_t{0xFFFF});
      bitmap[words - 1] = static_cast<uint16_t>(last);
    } else {
      headers_at += 2 * words;
      if (size < headers_at) return false;
      std::memcpy(bitmap, src + kHeadSize, 2 * words);
      if (bitmap[words - 1] & ~last) return false;
    }
    size_t n_present = 0;
    for (size_t i = 0; i < words; ++i) n_present += static_cast<size_t>(std::popcount(bitmap[i]));
    planes_at = headers_at + n_present * sizeof(typename F::Header);
    if (size < planes_at) return false;
    bool good = true;
    size_t planes = 0;
    for (size_t i = 0; i < n_present; ++i) {
      const GroupHeader header = header_at<F>(src + headers_at, i);
      good &= good_header<F>(header.base, header.shape, setting.m);
      planes += planes_of<F>(header.shape, setting.m);
    }
    return good && size == planes_at + 2 * planes;
  }
};

template <typename F>
static bool decode_chunk(const Setting& setting, const std::byte* src, size_t size, size_t groups,
                         std::byte* dst) {
  Layout<F> layout;
  if (!layout.read(setting, src, size, groups)) return false;
  const std::byte* planes = src + layout.planes_at;
  for (size_t g = 0, next = 0; g < groups; ++g) {
    typename F::Word words[kGroup] = {};
    if (layout.present(g)) {
      const GroupHeader header = header_at<F>(src + layout.headers_at, next++);
      decode_group<F>(setting, header, planes, words);
      planes += 2 * planes_of<F>(header.shape, setting.m);
    }
    std::memcpy(dst + g * sizeof(words), words, sizeof(words));
  }
  return true;
}

}  // namespace wirepress::bx
