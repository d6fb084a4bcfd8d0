// SPDX-License-Identifier: Apache-2.0
// 4 values at a time in the encoder; the decoder is the portable one.
#include <arm_neon.h>

#include "codecs/fre/lanes.hpp"

namespace wirepress {
namespace {

struct Four {
  static constexpr size_t kLanes = 4;
  uint32x4_t v;

  static Four all(uint32_t value) { return {vdupq_n_u32(value)}; }
  static Four load(const uint32_t* from) { return {vld1q_u32(from)}; }
  void store(uint32_t* to) const { vst1q_u32(to, v); }
  template <class Element>
  static Four load_values(const std::byte* from) {
    if constexpr (sizeof(Element) == 4) {
      return {vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from)))};
    } else {
      const uint8x8_t half = vld1_u8(reinterpret_cast<const uint8_t*>(from));
      return {vshll_n_u16(vreinterpret_u16_u8(half), 16)};
    }
  }

  Four operator&(Four w) const { return {vandq_u32(v, w.v)}; }
  Four operator|(Four w) const { return {vorrq_u32(v, w.v)}; }
  Four operator+(Four w) const { return {vaddq_u32(v, w.v)}; }
  Four operator-(Four w) const { return {vsubq_u32(v, w.v)}; }
  Four operator==(Four w) const { return {vceqq_u32(v, w.v)}; }
  Four without(Four w) const { return {vbicq_u32(v, w.v)}; }
  Four left(int n) const { return {vshlq_u32(v, vdupq_n_s32(n))}; }
  Four right(int n) const { return {vshlq_u32(v, vdupq_n_s32(-n))}; }
  Four left_each(Four w) const { return {vshlq_u32(v, vreinterpretq_s32_u32(w.v))}; }
  Four at_least(Four w) const { return {vcgeq_u32(v, w.v)}; }
  Four smaller(Four w) const { return {vminq_u32(v, w.v)}; }
  Four distance() const { return {vreinterpretq_u32_s32(vabsq_s32(vreinterpretq_s32_u32(v)))}; }
  bool any() const { return vmaxvq_u32(v) != 0; }
  static Four pick(Four mask, Four a, Four b) { return {vbslq_u32(mask.v, a.v, b.v)}; }
  Four after(Four last) const { return {vextq_u32(last.v, v, 3)}; }
  Four look_up(const uint32_t* table) const {
    const uint32x4_t index = vmlaq_n_u32(vdupq_n_u32(0x03020100), v, 0x04040404);
    const uint8x16x4_t bytes = vld1q_u8_x4(reinterpret_cast<const uint8_t*>(table));
    return {vreinterpretq_u32_u8(vqtbl4q_u8(bytes, vreinterpretq_u8_u32(index)))};
  }
  void store_twos(Four size, uint64_t* bits, uint64_t* sizes) const {
    const uint64x2_t low = vdupq_n_u64(0xFFFFFFFF);
    const uint64x2_t codes = vreinterpretq_u64_u32(v);
    const uint64x2_t both = vreinterpretq_u64_u32(size.v);
    const uint64x2_t first = vandq_u64(both, low);
    const uint64x2_t second = vshlq_u64(vshrq_n_u64(codes, 32), vreinterpretq_s64_u64(first));
    vst1q_u64(bits, vorrq_u64(vandq_u64(codes, low), second));
    vst1q_u64(sizes, vaddq_u64(first, vshrq_n_u64(both, 32)));
  }
};

}  // namespace

extern const Kernel fre_neon;
const Kernel fre_neon = make_kernel<Lanes<Four>>("neon", always_usable);

}  // namespace wirepress
