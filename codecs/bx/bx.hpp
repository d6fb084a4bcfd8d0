// SPDX-License-Identifier: Apache-2.0
// What the kernels of bx share: the words of the format (spec.md), the quantiser, and the walk over
// the chunks of a block, in which a kernel is a pair of functions for one whole chunk. All
// functions are `static`: kernels are compiled for different instruction sets, and the linker must
// not hand one kernel another's copy.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/device.hpp"
#include "base/kernel.hpp"

namespace wirepress::bx {

enum ParamIndex { kM = 0, kRound = 1, kFlush = 2 };
enum Round { kNearest = 0, kTruncate = 1, kMidpoint = 2 };

constexpr size_t kGroup = 16;         // values
constexpr size_t kChunkGroups = 256;  // of a whole chunk; the last one may have fewer
constexpr size_t kChunk = kGroup * kChunkGroups;
constexpr size_t kHeadSize = 2;
constexpr unsigned kDense = 0x8000;  // in a chunk's head: every group has a header, no bitmap
constexpr size_t kBitmapSize = kChunkGroups / 8;

// A header's shape byte.
constexpr unsigned kWidth = 0x0F;  // exponent planes
constexpr unsigned kZero = 0x10;   // there are values with exponent 0
constexpr unsigned kFull = 0x20;   // all fraction bits, not m
constexpr unsigned kSignShift = 6;
enum Sign { kPositive = 0, kNegative = 1, kMixed = 2 };

template <typename WordType, unsigned kD, unsigned kE>
struct Float {
  using Word = WordType;
  using Header = std::conditional_t<(kE > 8), uint32_t, uint16_t>;  // base, then shape
  static constexpr unsigned kDigits = kD;                           // of the fraction field
  static constexpr unsigned kExponentBits = kE;
  static constexpr unsigned kShapeShift = 8 * sizeof(Header) / 2;
  static constexpr Word kSign = static_cast<Word>(Word{1} << (kD + kE));
  static constexpr Word kFraction = static_cast<Word>((Word{1} << kD) - 1);
  static constexpr Word kInfinity = static_cast<Word>(kSign - 1 - kFraction);
  // The largest code of a chunk, its head included.
  static constexpr size_t kMost =
      kHeadSize + kBitmapSize + kChunkGroups * (sizeof(Header) + 2 * 8 * sizeof(Word));
};
using Float16 = Float<uint16_t, 10, 5>;
using Bfloat16 = Float<uint16_t, 7, 8>;
using Float32 = Float<uint32_t, 23, 8>;
using Float64 = Float<uint64_t, 52, 11>;

struct Setting {
  unsigned m;
  Round round;
  bool flush;
};

static inline Setting setting_of(const Args& args) {
  return {static_cast<unsigned>(args.value[kM]), static_cast<Round>(args.value[kRound]),
          args.value[kFlush] != 0};
}

// Which word stands for which; the rest of the format is lossless.
template <typename F>
class Quantiser {
 public:
  using Word = typename F::Word;
  explicit constexpr Quantiser(const Setting& s)
      : drop_(static_cast<Word>(F::kFraction >> s.m)),
        bias_(s.round == kNearest ? drop_ >> 1 : 0),
        half_(s.round == kMidpoint ? static_cast<Word>(drop_ - (drop_ >> 1)) : 0),
        tie_shift_(F::kDigits - s.m),
        tie_mask_(s.round == kNearest && s.m < F::kDigits ? 1 : 0),
        zero_keep_(s.flush ? Word{0} : static_cast<Word>(~Word{0})) {}

  constexpr Word operator()(Word word) const {
    const Word sign = word & F::kSign;
    const Word size = word & static_cast<Word>(~F::kSign);  // so that no NaN wraps in rounding
    const Word cut = size & static_cast<Word>(~drop_);
    if (size >= F::kInfinity) {  // a NaN stays one
      const bool lost = size > F::kInfinity && cut == F::kInfinity;
      return sign | cut | static_cast<Word>(lost ? Word{1} << (F::kDigits - 1) : 0);
    }
    // Half a unit less one, and one more when the kept part is odd: ties go to even.
    const Word odd = static_cast<Word>(size >> tie_shift_) & tie_mask_;
    const Word kept = static_cast<Word>(size + bias_ + odd) & static_cast<Word>(~drop_);
    // The largest values would become infinite.
    const Word number = sign | (kept >= F::kInfinity ? cut : kept) | half_;
    return size <= F::kFraction ? word & zero_keep_ : number;
  }

 private:
  Word drop_;  // the fraction bits that go
  Word bias_;
  Word half_;  // what the decoder adds; 0 at full m
  unsigned tie_shift_;
  Word tie_mask_;
  Word zero_keep_;  // 0 where words with exponent 0 become +0
};

template <typename F>
static constexpr unsigned planes_of(unsigned shape, unsigned m) {
  const unsigned fraction = shape & kFull ? F::kDigits : m;
  return fraction + (shape & kWidth) + (shape >> kSignShift == kMixed);
}

// On a GPU addresses are even.
WPR_HD static inline unsigned load16(const std::byte* from) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const uint16_t*>(from);
#else
  uint16_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
#endif
}
WPR_HD static inline void store16(std::byte* to, size_t word) {
  const uint16_t bits = static_cast<uint16_t>(word);
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint16_t*>(to) = bits;
#else
  std::memcpy(to, &bits, sizeof(bits));
#endif
}

// The whole of a chunk's head: what follows, in words of 16 bits, and kDense.
static constexpr unsigned chunk_head(size_t size_after, size_t present, size_t groups) {
  if (present == 0) return 0;
  return static_cast<unsigned>(size_after / 2) | (present == groups ? kDense : 0);
}
static constexpr size_t bitmap_size(size_t groups) { return (groups + 15) / 16 * 2; }

// ---- blocks -------------------------------------------------------------------------------

// Encodes the chunk of the 4096 words at src, of which `groups` groups count (the others are 0),
// to dst, where there are F::kMost + kSlack bytes that may be written. The size.
using EncodeChunk = size_t (*)(const Setting&, const std::byte* src, size_t groups, std::byte* dst);
// Decodes the `groups` groups of a chunk whose head is at src and says that the chunk has `size`
// bytes, head included, which are there; not an empty chunk. False: corrupt.
using DecodeChunk = bool (*)(const Setting&, const std::byte* src, size_t size, size_t groups,
                             std::byte* dst);
constexpr size_t kSlack = 128;

template <typename F>
static Status encode_block(const Args& args, ConstBytes src, Bytes dst, size_t* written,
                           EncodeChunk encode_chunk) {
  constexpr size_t kWord = sizeof(typename F::Word);
  const Setting setting = setting_of(args);
  const size_t n = src.size() / kWord;
  size_t position = 0;
  const auto full = [&] {
    return fail(Code::kDstTooSmall, "bx: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  };
  alignas(64) std::byte padded[kChunk * kWord];
  std::byte code[F::kMost + kSlack];
  for (size_t first = 0; first < n; first += kChunk) {
    const size_t count = std::min(kChunk, n - first);
    const std::byte* from = src.data() + first * kWord;
    if (count < kChunk) {
      std::memcpy(padded, from, count * kWord);
      std::memset(padded + count * kWord, 0, sizeof(padded) - count * kWord);
      from = padded;
    }
    const size_t groups = (count + kGroup - 1) / kGroup;
    if (dst.size() - position >= F::kMost + kSlack) {
      position += encode_chunk(setting, from, groups, dst.data() + position);
      continue;
    }
    const size_t size = encode_chunk(setting, from, groups, code);
    if (size > dst.size() - position) return full();
    std::memcpy(dst.data() + position, code, size);
    position += size;
  }
  const size_t tail = src.size() - n * kWord;
  if (tail > dst.size() - position) return full();
  if (tail > 0) std::memcpy(dst.data() + position, src.data() + n * kWord, tail);
  *written = position + tail;
  return {};
}

// Whether the bytes at `from` are all 0.
static inline bool all_zero(const std::byte* from, size_t size) {
  return std::all_of(from, from + size, [](std::byte b) { return b == std::byte{0}; });
}

template <typename F>
static Status decode_block(const Args& args, ConstBytes src, Bytes dst, size_t* written,
                           DecodeChunk decode_chunk) {
  constexpr size_t kWord = sizeof(typename F::Word);
  const Setting setting = setting_of(args);
  const size_t n = dst.size() / kWord;
  size_t position = 0;
  for (size_t first = 0; first < n; first += kChunk) {
    const size_t count = std::min(kChunk, n - first);
    const size_t groups = (count + kGroup - 1) / kGroup;
    std::byte* to = dst.data() + first * kWord;
    const size_t left = src.size() - position;
    if (left < kHeadSize)
      return fail(Code::kCorrupt, "bx: %zu bytes end before value %zu of %zu", src.size(), first,
                  n);
    const std::byte* from = src.data() + position;
    const unsigned head = load16(from);
    if (head == 0) {
      std::memset(to, 0, count * kWord);
      position += kHeadSize;
      continue;
    }
    const size_t size = kHeadSize + 2 * (head & ~kDense);
    if (size > left)
      return fail(Code::kCorrupt, "bx: the chunk at value %zu has %zu bytes, %zu are left", first,
                  size, left);
    bool good = true;
    if (count % kGroup == 0) {
      good = decode_chunk(setting, from, size, groups, to);
    } else {  // the last group is filled with zeros
      alignas(64) std::byte padded[kChunk * kWord];
      good = decode_chunk(setting, from, size, groups, padded) &&
             all_zero(padded + count * kWord, (groups * kGroup - count) * kWord);
      if (good) std::memcpy(to, padded, count * kWord);
    }
    if (!good)
      return fail(Code::kCorrupt, "bx: the chunk of %zu bytes at %zu is not one of %zu values",
                  size, position, count);
    position += size;
  }
  const size_t tail = dst.size() - n * kWord;
  if (src.size() - position != tail)
    return fail(Code::kCorrupt, "bx: %zu bytes after %zu values, not %zu", src.size() - position, n,
                tail);
  if (tail > 0) std::memcpy(dst.data() + n * kWord, src.data() + position, tail);
  *written = dst.size();
  return {};
}

}  // namespace wirepress::bx
