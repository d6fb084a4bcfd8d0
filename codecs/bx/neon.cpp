// SPDX-License-Identifier: Apache-2.0
// float32 and bfloat16, a group at a time; the other types are portable. bfloat16 is widened: it is
// the upper half of a float32. Groups of at most 16 planes are made and read in 16-bit lanes.
#include <arm_neon.h>

#include <array>

#include "codecs/bx/kernel.hpp"

namespace wirepress {
namespace {

using namespace bx;

constexpr int kExponentBit = 23;
constexpr uint32_t kOne = 1u << kExponentBit;  // the smallest word with exponent 1
constexpr uint32_t kSignBit = 1u << 31;
constexpr uint32_t kInf = 0xFF * kOne;
constexpr unsigned kShortDigits = 7;  // with 8 exponent planes and a sign plane: 16

template <typename F>
constexpr bool kNarrow = sizeof(typename F::Word) == 2;

inline uint8_t* bytes(std::byte* to) { return reinterpret_cast<uint8_t*>(to); }
inline const uint8_t* bytes(const std::byte* from) {
  return reinterpret_cast<const uint8_t*>(from);
}

// transpose8 of portable.hpp, of each half.
inline uint8x16_t transpose(uint8x16_t rows) {
  uint64x2_t x = vreinterpretq_u64_u8(rows);
  uint64x2_t t = vandq_u64(veorq_u64(x, vshrq_n_u64(x, 7)), vdupq_n_u64(0x00AA00AA00AA00AA));
  x = veorq_u64(x, veorq_u64(t, vshlq_n_u64(t, 7)));
  t = vandq_u64(veorq_u64(x, vshrq_n_u64(x, 14)), vdupq_n_u64(0x0000CCCC0000CCCC));
  x = veorq_u64(x, veorq_u64(t, vshlq_n_u64(t, 14)));
  t = vandq_u64(veorq_u64(x, vshrq_n_u64(x, 28)), vdupq_n_u64(0x00000000F0F0F0F0));
  return vreinterpretq_u8_u64(veorq_u64(x, veorq_u64(t, vshlq_n_u64(t, 28))));
}

// 16 numbers of 16 bits.
struct Halves {
  uint16x8_t low;   // values 0-7
  uint16x8_t high;  // values 8-15
};

// Halves is what 16 planes have of 16 codes; of planes, `low` are the first 8.
inline Halves to_planes(Halves codes) {
  const auto rows = [&](uint8x16_t column) {
    const uint8x16_t x = transpose(column);
    return vreinterpretq_u16_u8(vzip1q_u8(x, vextq_u8(x, x, 8)));
  };
  const uint8x16_t low = vreinterpretq_u8_u16(codes.low);
  const uint8x16_t high = vreinterpretq_u8_u16(codes.high);
  return {rows(vuzp1q_u8(low, high)), rows(vuzp2q_u8(low, high))};
}

inline Halves to_codes(Halves planes) {
  const auto columns = [](uint16x8_t x) {
    return transpose(vuzp1q_u8(vreinterpretq_u8_u16(x), vreinterpretq_u8_u16(vshrq_n_u16(x, 8))));
  };
  const uint8x16_t low = columns(planes.low);
  const uint8x16_t high = columns(planes.high);
  return {vreinterpretq_u16_u8(vzip1q_u8(low, high)), vreinterpretq_u16_u8(vzip2q_u8(low, high))};
}

// ---- encoder ----------------------------------------------------------------------------------

// A group on its way. `half` are the upper halves of the words.
struct Group {
  uint32x4_t word[4];
  Halves half;
  bool any;   // not all are +0
  bool full;  // there are denormals to be kept
};

// kExact: fractions are whole and nothing is flushed.
template <typename F, bool kNear, bool kFlush, bool kExact>
class Encoder {
 public:
  explicit Encoder(const Setting& setting)
      : m_(setting.m),
        drop_((kOne - 1) >> setting.m),
        bias_(kNear ? drop_ >> 1 : 0),
        half_(setting.round == kMidpoint && setting.m < F::kDigits ? drop_ - (drop_ >> 1) : 0) {}

  size_t chunk(const std::byte* src, size_t groups, std::byte* dst) const {
    constexpr size_t kBytes = kGroup * sizeof(typename F::Word);
    uint16_t bitmap[kChunkGroups / 16] = {};
    uint16_t header[kChunkGroups];
    size_t present = 0;
    // Planes are written to where they belong in a dense chunk.
    std::byte* const planes = dst + kHeadSize + 2 * groups;
    std::byte* to = planes;
    for (size_t g = 0; g < groups; ++g) {
      Group group;
      read(src + g * kBytes, &group);
      if (!group.any) continue;
      bitmap[g / 16] = static_cast<uint16_t>(bitmap[g / 16] | 1u << g % 16);
      const GroupHeader head = describe_group(group);
      header[present++] = static_cast<uint16_t>(head.base | head.shape << 8);
      write_planes(group, head, to);
      to += 2 * planes_of<F>(head.shape, m_);
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
  uint32x4_t quick(uint32x4_t size) const {
    if constexpr (!kNear) return size;
    const uint32x4_t odd = vandq_u32(
        vshlq_u32(size, vdupq_n_s32(static_cast<int>(m_) - kExponentBit)), vdupq_n_u32(1));
    return vaddq_u32(vaddq_u32(size, vdupq_n_u32(bias_)), odd);
  }

  uint32x4_t careful(uint32x4_t size) const {
    const uint32x4_t inf = vdupq_n_u32(kInf);
    const uint32x4_t cut = vbicq_u32(size, vdupq_n_u32(drop_));
    uint32x4_t kept = vbicq_u32(quick(size), vdupq_n_u32(drop_));
    kept = vbslq_u32(vcgeq_u32(kept, inf), cut, kept);
    const uint32x4_t lost = vandq_u32(vcgtq_u32(size, inf), vceqq_u32(kept, inf));
    kept = vorrq_u32(kept, vandq_u32(lost, vdupq_n_u32(kOne >> 1)));
    kept = vorrq_u32(kept, vandq_u32(vcltq_u32(size, inf), vdupq_n_u32(half_)));
    return vbslq_u32(vcltq_u32(size, vdupq_n_u32(kOne)), size, kept);
  }

  void read(const std::byte* src, Group* group) const {
    uint32x4_t x[4], size[4];
    uint32x4_t less = vdupq_n_u32(~0u), most = vdupq_n_u32(0), any = vdupq_n_u32(0);
    for (size_t i = 0; i < 4; ++i) {
      if constexpr (kNarrow<F>) {
        x[i] = vshll_n_u16(vreinterpret_u16_u8(vld1_u8(bytes(src) + 8 * i)), 16);
      } else {
        x[i] = vreinterpretq_u32_u8(vld1q_u8(bytes(src) + 16 * i));
      }
      size[i] = vandq_u32(x[i], vdupq_n_u32(~kSignBit));
      if constexpr (kFlush) {
        const uint32x4_t keep = vcgeq_u32(size[i], vdupq_n_u32(kOne));
        x[i] = vandq_u32(x[i], keep);
        size[i] = vandq_u32(size[i], keep);
      }
      any = vorrq_u32(any, x[i]);
      less = vminq_u32(less, vsubq_u32(size[i], vdupq_n_u32(1)));
      group->word[i] = kExact ? size[i] : quick(size[i]);
      most = vmaxq_u32(most, group->word[i]);
    }
    group->any = vmaxvq_u32(any) != 0;
    group->full = !kExact && vminvq_u32(less) < kOne - 1;
    if (!kExact && (group->full || vmaxvq_u32(most) >= kInf)) [[unlikely]] {
      for (size_t i = 0; i < 4; ++i) group->word[i] = careful(size[i]);
    }
    for (size_t i = 0; i < 4; ++i)
      group->word[i] = vbslq_u32(vdupq_n_u32(kSignBit), x[i], group->word[i]);
    const auto upper = [&](size_t i) {
      return vcombine_u16(vshrn_n_u32(group->word[i], 16), vshrn_n_u32(group->word[i + 1], 16));
    };
    group->half = {upper(0), upper(2)};
  }

  GroupHeader describe_group(const Group& group) const {
    const auto exponents = [](uint16x8_t half) { return vshrq_n_u16(vshlq_n_u16(half, 1), 8); };
    const uint16x8_t low = exponents(group.half.low);
    const uint16x8_t high = exponents(group.half.high);
    const uint16x8_t one = vdupq_n_u16(1);
    const unsigned most = vmaxvq_u16(vmaxq_u16(low, high));
    const unsigned less = vminvq_u16(vminq_u16(vsubq_u16(low, one), vsubq_u16(high, one)));
    const bool zero = vminvq_u16(vminq_u16(low, high)) == 0;
    const auto alike = [](uint16x8_t half, uint16x8_t exponent) {
      return vceqq_u16(vcltzq_s16(vreinterpretq_s16_u16(half)), vtstq_u16(exponent, exponent));
    };
    const bool some_negative = vmaxvq_u16(vorrq_u16(group.half.low, group.half.high)) >> 15;
    const bool normal_negative =
        vminvq_u16(vandq_u16(alike(group.half.low, low), alike(group.half.high, high))) != 0;
    const unsigned sign = !some_negative ? kPositive : normal_negative ? kNegative : kMixed;
    GroupHeader header;
    header.base = most == 0 ? 0 : less + (zero ? 0 : 1);
    header.shape = static_cast<unsigned>(std::bit_width(most - header.base)) | (zero ? kZero : 0) |
                   (group.full ? kFull : 0) | sign << kSignShift;
    header.present = true;
    return header;
  }

  void write_planes(const Group& group, const GroupHeader& header, std::byte* to) const {
    const bool mixed = header.shape >> kSignShift == kMixed;
    const unsigned fraction = header.shape & kFull ? F::kDigits : m_;
    const uint32_t base = header.base << fraction;
    if (fraction <= kShortDigits) {
      const auto code = [&](uint16x8_t word) {
        const uint16x8_t size = vandq_u16(word, vdupq_n_u16(0x7FFF));
        const uint16x8_t normal = vcgeq_u16(size, vdupq_n_u16(0x80));
        const uint16x8_t cut =
            vshlq_u16(size, vdupq_n_s16(static_cast<int16_t>(fraction - kShortDigits)));
        return sign_first(
            vsubq_u16(cut, vandq_u16(normal, vdupq_n_u16(static_cast<uint16_t>(base)))),
            vshrq_n_u16(word, 15), mixed);
      };
      store(to, to_planes({code(group.half.low), code(group.half.high)}));
    } else {
      uint16x8_t c[4];
      for (size_t i = 0; i < 4; ++i) {
        const uint32x4_t word = group.word[i];
        const uint32x4_t size = vandq_u32(word, vdupq_n_u32(~kSignBit));
        const uint32x4_t normal = vcgeq_u32(size, vdupq_n_u32(kOne));
        const uint32x4_t cut =
            vshlq_u32(size, vdupq_n_s32(static_cast<int>(fraction) - kExponentBit));
        uint32x4_t code = vsubq_u32(cut, vandq_u32(normal, vdupq_n_u32(base)));
        if (mixed) code = vorrq_u32(vshlq_n_u32(code, 1), vshrq_n_u32(word, 31));
        c[i] = vreinterpretq_u16_u32(code);
      }
      store(to, to_planes({vuzp1q_u16(c[0], c[1]), vuzp1q_u16(c[2], c[3])}));
      store(to + 32, to_planes({vuzp2q_u16(c[0], c[1]), vuzp2q_u16(c[2], c[3])}));
    }
  }

  static uint16x8_t sign_first(uint16x8_t code, uint16x8_t sign, bool mixed) {
    return mixed ? vorrq_u16(vshlq_n_u16(code, 1), sign) : code;
  }
  static void store(std::byte* to, Halves planes) {
    vst1q_u8(bytes(to), vreinterpretq_u8_u16(planes.low));
    vst1q_u8(bytes(to) + 16, vreinterpretq_u8_u16(planes.high));
  }

  unsigned m_;
  uint32_t drop_;
  uint32_t bias_;
  uint32_t half_;
};

// ---- decoder ----------------------------------------------------------------------------------

// One group's planes to its 16 words. Up to `end` all may be read.
template <typename F, bool kMid>
class GroupDecoder {
 public:
  GroupDecoder(const Setting& setting, const std::byte* end) : m_(setting.m), end_(end) {}

  void operator()(const GroupHeader& header, const std::byte* planes, std::byte* dst) const {
    const unsigned shape = header.shape;
    const bool full = (shape & kFull) != 0;
    const unsigned fraction = full ? F::kDigits : m_;
    const bool mixed = shape >> kSignShift == kMixed;
    const unsigned n = planes_of<F>(shape, m_);
    std::byte copy[64];
    if (static_cast<size_t>(end_ - planes) < sizeof(copy)) {
      std::memcpy(copy, planes, static_cast<size_t>(end_ - planes));
      planes = copy;
    }
    const uint32_t base =
        header.base << kExponentBit | (shape >> kSignShift == kNegative ? kSignBit : 0);
    const uint32_t always = shape & kZero ? 0 : ~0u;
    const uint32_t half = kMid && !full ? (kOne >> 1) >> m_ : 0;
    const Halves low = to_codes(load(planes, n));
    if (fraction <= kShortDigits && (half & 0xFFFF) == 0) {
      write(dst, word16(low.low, mixed, fraction, base, always, half),
            word16(low.high, mixed, fraction, base, always, half));
    } else if constexpr (!kNarrow<F>) {
      const Halves high = to_codes(load(planes + 32, n > 16 ? n - 16 : 0));
      const uint16x8_t code[4] = {vzip1q_u16(low.low, high.low), vzip2q_u16(low.low, high.low),
                                  vzip1q_u16(low.high, high.high), vzip2q_u16(low.high, high.high)};
      for (size_t i = 0; i < 4; ++i) {
        const uint32x4_t word =
            word32(vreinterpretq_u32_u16(code[i]), mixed, fraction, base, always, half);
        vst1q_u8(bytes(dst) + 16 * i, vreinterpretq_u8_u32(word));
      }
    }
  }

 private:
  // The first n of 16 planes, the others 0.
  static Halves load(const std::byte* from, unsigned n) {
    static constexpr uint16_t kNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint16x8_t limit = vdupq_n_u16(static_cast<uint16_t>(n));
    const auto part = [&](size_t i) {
      const uint16x8_t there = vcltq_u16(vld1q_u16(kNumbers + 8 * i), limit);
      return vandq_u16(there, vreinterpretq_u16_u8(vld1q_u8(bytes(from) + 16 * i)));
    };
    return {part(0), part(1)};
  }

  // A word whose fraction has at most 7 bits; the upper half of it.
  static uint16x8_t word16(uint16x8_t code, bool mixed, unsigned fraction, uint32_t base,
                           uint32_t always, uint32_t half) {
    uint16x8_t sign = vdupq_n_u16(0);
    if (mixed) {
      sign = vshlq_n_u16(code, 15);
      code = vshrq_n_u16(code, 1);
    }
    const int up = static_cast<int>(kShortDigits) - static_cast<int>(fraction);
    const uint16x8_t size = vshlq_u16(code, vdupq_n_s16(static_cast<int16_t>(up)));
    const uint16x8_t normal =
        vorrq_u16(vcgeq_u16(size, vdupq_n_u16(0x80)), vdupq_n_u16(static_cast<uint16_t>(always)));
    uint16x8_t word = vorrq_u16(size, sign);
    word = vaddq_u16(word, vandq_u16(normal, vdupq_n_u16(static_cast<uint16_t>(base >> 16))));
    if constexpr (kMid) {
      const uint16x8_t inf = vdupq_n_u16(kInf >> 16);
      const uint16x8_t exponent = vandq_u16(word, inf);
      const uint16x8_t none = vorrq_u16(vceqzq_u16(exponent), vceqq_u16(exponent, inf));
      word = vorrq_u16(word, vbicq_u16(vdupq_n_u16(static_cast<uint16_t>(half >> 16)), none));
    }
    return word;
  }

  static uint32x4_t word32(uint32x4_t code, bool mixed, unsigned fraction, uint32_t base,
                           uint32_t always, uint32_t half) {
    uint32x4_t sign = vdupq_n_u32(0);
    if (mixed) {
      sign = vshlq_n_u32(code, 31);
      code = vshrq_n_u32(code, 1);
    }
    const uint32x4_t size = vshlq_u32(code, vdupq_n_s32(kExponentBit - static_cast<int>(fraction)));
    const uint32x4_t normal = vorrq_u32(vcgeq_u32(size, vdupq_n_u32(kOne)), vdupq_n_u32(always));
    uint32x4_t word = vorrq_u32(size, sign);
    word = vaddq_u32(word, vandq_u32(normal, vdupq_n_u32(base)));
    if constexpr (kMid) {
      const uint32x4_t inf = vdupq_n_u32(kInf);
      const uint32x4_t exponent = vandq_u32(word, inf);
      const uint32x4_t none = vorrq_u32(vceqzq_u32(exponent), vceqq_u32(exponent, inf));
      word = vorrq_u32(word, vbicq_u32(vdupq_n_u32(half), none));
    }
    return word;
  }

  static void write(std::byte* to, uint16x8_t low, uint16x8_t high) {
    if constexpr (kNarrow<F>) {
      vst1q_u8(bytes(to), vreinterpretq_u8_u16(low));
      vst1q_u8(bytes(to) + 16, vreinterpretq_u8_u16(high));
    } else {
      const uint16x8_t none = vdupq_n_u16(0);
      vst1q_u8(bytes(to), vreinterpretq_u8_u16(vzip1q_u16(none, low)));
      vst1q_u8(bytes(to) + 16, vreinterpretq_u8_u16(vzip2q_u16(none, low)));
      vst1q_u8(bytes(to) + 32, vreinterpretq_u8_u16(vzip1q_u16(none, high)));
      vst1q_u8(bytes(to) + 48, vreinterpretq_u8_u16(vzip2q_u16(none, high)));
    }
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
  const std::byte* planes = src + layout.planes_at;
  constexpr size_t kBytes = kGroup * sizeof(typename F::Word);
  for (size_t g = 0, next = 0; g < groups; ++g) {
    if (!layout.present(g)) {
      std::memset(dst + g * kBytes, 0, kBytes);
      continue;
    }
    const GroupHeader header = header_at<F>(src + layout.headers_at, next++);
    decode_group(header, planes, dst + g * kBytes);
    planes += 2 * planes_of<F>(header.shape, setting.m);
  }
  return true;
}

// ---- kernel -----------------------------------------------------------------------------------

struct Neon : ShortAndSingle<Neon> {
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

extern const Kernel bx_neon;
const Kernel bx_neon = ChunkKernel<Neon>::of("neon", always_usable);

}  // namespace wirepress
