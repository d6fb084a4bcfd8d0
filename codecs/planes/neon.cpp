// SPDX-License-Identifier: Apache-2.0
// Four-byte elements, 16 at a time: loads and stores take them apart, and the turn by one bit is
// made between neighbouring planes.
#include <arm_neon.h>

#include "codecs/planes/planes.hpp"

namespace wirepress {
namespace {

struct NeonOps : PlainOps {
  static constexpr size_t kStep = 16;

  static bool line_is_zero(const std::byte* line) {
    const uint8_t* p = bytes(line);
    const uint8x16_t v = vorrq_u8(vorrq_u8(vld1q_u8(p), vld1q_u8(p + 16)),
                                  vorrq_u8(vld1q_u8(p + 32), vld1q_u8(p + 48)));
    return vmaxvq_u8(v) == 0;
  }

  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, std::byte* const* planes) {
    if constexpr (sizeof(Word) == 4) {
      for (; begin + kStep <= n; begin += kStep) {
        const uint8x16x4_t v = vld4q_u8(bytes(src + 4 * begin));
#pragma GCC unroll 4
        for (size_t p = 0; p < 4; ++p)
          vst1q_u8(bytes(planes[p] + begin),
                   vsriq_n_u8(vshlq_n_u8(v.val[p], 1), v.val[(p + 3) % 4], 7));
      }
    }
    PlainOps::split<Word>(src, begin, n, planes);
  }

  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, std::byte* dst) {
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
    PlainOps::join<Word>(planes, begin, n, dst);
  }

 private:
  static const uint8_t* bytes(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }
  static uint8_t* bytes(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }
};

}  // namespace

extern const Kernel planes_neon;
const Kernel planes_neon = Planes<NeonOps>::kernel("neon", always_usable);

}  // namespace wirepress
