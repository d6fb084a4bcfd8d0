// SPDX-License-Identifier: Apache-2.0
// Lists by shuffles of eight values (shuffle8.hpp); elements of four bytes 16 at a time: loads and
// stores take them apart, and the turn by one bit is made between neighbouring planes.
#include <arm_neon.h>

#include "codecs/planes/planes.hpp"
#include "codecs/planes/shuffle8.hpp"

namespace wirepress {
namespace {
namespace planes {

inline const uint8_t* bytes(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }
inline uint8_t* bytes(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }

struct NeonEight {
  static constexpr size_t kValues = 16;
  using Limit = uint8x16_t;
  static Limit limit(uint8_t split) { return vdupq_n_u8(split); }
  static uint32_t above(const std::byte* list, Limit limit) {
    constexpr uint8_t kPlaces[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x8_t places = vld1_u8(kPlaces);
    const uint8x16_t mask = vcgeq_u8(vld1q_u8(bytes(list)), limit);
    const uint32_t low = vaddv_u8(vand_u8(vget_low_u8(mask), places));
    return low | static_cast<uint32_t>(vaddv_u8(vand_u8(vget_high_u8(mask), places))) << 8;
  }
  static bool any_is(const std::byte* list, Limit value) {
    return vmaxvq_u8(vceqq_u8(vld1q_u8(bytes(list)), value)) != 0;
  }
  static uint64_t sort(const std::byte* list, const uint8_t* shuffle) {
    const uint8x8_t sorted = vtbl1_u8(vld1_u8(bytes(list)), vld1_u8(shuffle));
    return vget_lane_u64(vreinterpret_u64_u8(sorted), 0);
  }
  static void merge(const std::byte* left, const std::byte* right, const uint8_t* shuffle,
                    std::byte* out) {
    const uint8x16_t both = vcombine_u8(vld1_u8(bytes(left)), vld1_u8(bytes(right)));
    vst1_u8(bytes(out), vqtbl1_u8(both, vld1_u8(shuffle)));
  }
};

struct NeonOps : ShuffleOps<NeonEight> {
  static constexpr size_t kStep = 16;

  static bool line_is_zero(const std::byte* line) {
    const uint8_t* p = bytes(line);
    const uint8x16_t v = vorrq_u8(vorrq_u8(vld1q_u8(p), vld1q_u8(p + 16)),
                                  vorrq_u8(vld1q_u8(p + 32), vld1q_u8(p + 48)));
    return vmaxvq_u8(v) == 0;
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, uint64_t base,
                    std::byte* const* planes) {
    if constexpr (sizeof(Word) == 2) {
      for (; begin + kStep <= n; begin += kStep) {
        const uint8x16x2_t v = vld2q_u8(bytes(src + 2 * begin));
        vst1q_u8(bytes(planes[0] + begin), vsriq_n_u8(vshlq_n_u8(v.val[0], 1), v.val[1], 7));
        vst1q_u8(bytes(planes[1] + begin), vsriq_n_u8(vshlq_n_u8(v.val[1], 1), v.val[0], 7));
      }
    }
    if constexpr (sizeof(Word) == 4) {
      for (; begin + kStep <= n; begin += kStep) {
        const uint8x16x4_t v = vld4q_u8(bytes(src + 4 * begin));
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p)
          vst1q_u8(bytes(planes[p] + begin),
                   vsriq_n_u8(vshlq_n_u8(v.val[p], 1), v.val[(p + 3) % 4], 7));
      }
    }
    PlainOps::split<Word>(src, begin, n, base, planes);
  }

  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, uint64_t base,
                   bool /*past_caches*/, std::byte* dst) {
    if constexpr (sizeof(Word) == 2) {
      for (; begin + kStep <= n; begin += kStep) {
        const uint8x16_t a = vld1q_u8(bytes(planes[0] + begin));
        const uint8x16_t b = vld1q_u8(bytes(planes[1] + begin));
        uint8x16x2_t turned;
        turned.val[0] = vsliq_n_u8(vshrq_n_u8(a, 1), b, 7);
        turned.val[1] = vsliq_n_u8(vshrq_n_u8(b, 1), a, 7);
        vst2q_u8(bytes(dst + 2 * begin), turned);
      }
    }
    if constexpr (sizeof(Word) == 4) {
      for (; begin + kStep <= n; begin += kStep) {
        uint8x16_t v[4];
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p) v[p] = vld1q_u8(bytes(planes[p] + begin));
        uint8x16x4_t turned;
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p)
          turned.val[p] = vsliq_n_u8(vshrq_n_u8(v[p], 1), v[(p + 1) % 4], 7);
        vst4q_u8(bytes(dst + 4 * begin), turned);
      }
    }
    PlainOps::join<Word>(planes, begin, n, base, false, dst);
  }

  static void sums(std::byte* values, size_t n) {
    const uint8x16_t zero = vdupq_n_u8(0), offset = vdupq_n_u8(128);
    uint8x16_t before = zero;
    for (size_t i = 0; i < n; i += 16) {
      uint8x16_t v = vaddq_u8(vld1q_u8(bytes(values + i)), offset);
      v = vaddq_u8(v, vextq_u8(zero, v, 15));
      v = vaddq_u8(v, vextq_u8(zero, v, 14));
      v = vaddq_u8(v, vextq_u8(zero, v, 12));
      v = vaddq_u8(v, vextq_u8(zero, v, 8));
      v = vaddq_u8(v, before);
      before = vdupq_laneq_u8(v, 15);
      vst1q_u8(bytes(values + i), v);
    }
  }
};

}  // namespace planes
}  // namespace

extern const Kernel planes_neon;
const Kernel planes_neon = planes::kernel<planes::NeonOps>("neon", always_usable);

}  // namespace wirepress
