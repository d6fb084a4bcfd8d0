// SPDX-License-Identifier: Apache-2.0
// Chunks without any hit are passed over in registers.
#include <arm_neon.h>

#include "codecs/sparse/plain.hpp"

namespace wirepress {
namespace {

struct Ops : PlainOps {
  static uint8x16_t load(const std::byte* from) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(from));
  }
  static uint8x16_t all(uint8_t v) { return vdupq_n_u8(v); }
  static uint8x16_t all(uint16_t v) { return vreinterpretq_u8_u16(vdupq_n_u16(v)); }
  static uint8x16_t all(uint32_t v) { return vreinterpretq_u8_u32(vdupq_n_u32(v)); }

  template <typename T>
  static uint64_t test(const std::byte* v, T bits) {
    uint8x16_t any = vdupq_n_u8(0);
    for (size_t i = 0; i < 4 * sizeof(T); ++i) any = vorrq_u8(any, load(v + 16 * i));
    return vmaxvq_u8(vandq_u8(any, all(bits))) == 0 ? 0 : PlainOps::test<T>(v, bits);
  }
  template <typename T>
  static uint64_t differ(const std::byte* before, const std::byte* after) {
    uint8x16_t any = vdupq_n_u8(0);
    for (size_t i = 0; i < 4 * sizeof(T); ++i)
      any = vorrq_u8(any, veorq_u8(load(before + 16 * i), load(after + 16 * i)));
    return vmaxvq_u8(any) == 0 ? 0 : PlainOps::differ<T>(before, after);
  }
};

}  // namespace

extern const Kernel sparse_neon;
const Kernel sparse_neon = Sparse<Ops>::kernel("neon", always_usable);

}  // namespace wirepress
