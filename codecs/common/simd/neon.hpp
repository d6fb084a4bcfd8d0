// SPDX-License-Identifier: Apache-2.0
// The functions of avx512.hpp for aarch64.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace wirepress {
namespace {

struct Neon {
  using U = uint32x4_t;
  using F = float32x4_t;
  using M = uint32x4_t;
  static constexpr size_t kLanes = 4;

  static U load(const std::byte* from) { return vreinterpretq_u32_u8(vld1q_u8(bytes(from))); }
  static void store(std::byte* to, U v) { vst1q_u8(bytes(to), vreinterpretq_u8_u32(v)); }
  static F load_float(const std::byte* from) { return as_float(load(from)); }
  static void store_float(std::byte* to, F v) { store(to, as_bits(v)); }
  static U set(uint32_t v) { return vdupq_n_u32(v); }
  static F set_float(float v) { return vdupq_n_f32(v); }
  static U lanes() {
    static constexpr uint32_t kLane[4] = {0, 1, 2, 3};
    return vld1q_u32(kLane);
  }
  static F as_float(U v) { return vreinterpretq_f32_u32(v); }
  static U as_bits(F v) { return vreinterpretq_u32_f32(v); }

  static U both(U a, U b) { return vandq_u32(a, b); }
  static U either(U a, U b) { return vorrq_u32(a, b); }
  static U differ(U a, U b) { return veorq_u32(a, b); }
  static U add(U a, U b) { return vaddq_u32(a, b); }
  static U subtract(U a, U b) { return vsubq_u32(a, b); }
  static U multiply(U a, U b) { return vmulq_u32(a, b); }
  template <int kBits>
  static U left(U v) {
    return vshlq_n_u32(v, kBits);
  }
  template <int kBits>
  static U right(U v) {
    return vshrq_n_u32(v, kBits);
  }
  static U right(U v, U counts) {  // only the lowest byte of a count counts, as a signed number
    return vshlq_u32(v, vnegq_s32(vreinterpretq_s32_u32(vminq_u32(counts, vdupq_n_u32(32)))));
  }
  static U most(U a, U b) { return vmaxq_u32(a, b); }
  static U least(U a, U b) { return vminq_u32(a, b); }
  static U if_above(U a, U b, U yes, U no) {
    return vbslq_u32(vcgtq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)), yes, no);
  }
  static uint32_t greatest(U v) { return vmaxvq_u32(v); }

  static M less(F a, F b) { return vcltq_f32(a, b); }
  static M less(U a, U b) { return vcltq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)); }
  template <int kBit>
  static M has_bit(U v) {
    return vtstq_u32(v, vdupq_n_u32(1u << kBit));
  }
  static M both_masks(M a, M b) { return vandq_u32(a, b); }
  static U keep(M m, U v) { return vandq_u32(m, v); }
  static F pick(M m, F yes, F no) { return vbslq_f32(m, yes, no); }
  // sum + v where m is set, or is not; sum elsewhere. No sum is -0: it could come out as +0.
  static F add_where(M m, F sum, F v) {
    return vaddq_f32(sum, vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), m)));
  }
  static F add_unless(M m, F sum, F v) {
    return vaddq_f32(sum, vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v), m)));
  }
  static uint32_t bits(const M (&m)[4]) {
    U all = vandq_u32(m[0], lane_bits(0));
    for (size_t i = 1; i < 4; ++i) all = vorrq_u32(all, vandq_u32(m[i], lane_bits(i)));
    return vaddvq_u32(all);
  }
  static M mask(uint32_t bits, size_t number) {
    return vtstq_u32(vdupq_n_u32(bits), lane_bits(number));
  }

  static F add(F a, F b) { return vaddq_f32(a, b); }
  static F subtract(F a, F b) { return vsubq_f32(a, b); }
  static F multiply(F a, F b) { return vmulq_f32(a, b); }
  static F from_int(U v) { return vcvtq_f32_s32(vreinterpretq_s32_u32(v)); }
  static U truncate(F v) { return vreinterpretq_u32_s32(vcvtq_s32_f32(v)); }
  static U to_int(F v) { return vreinterpretq_u32_s32(vcvtnq_s32_f32(v)); }
  static U floor_to_int(F v) { return vreinterpretq_u32_s32(vcvtmq_s32_f32(v)); }

  static void store_half(std::byte* to, F v) {
    vst1_u8(bytes(to), vreinterpret_u8_f16(vcvt_f16_f32(v)));
  }
  static F load_half(const std::byte* from) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(bytes(from))));
  }
  static void store_upper16(std::byte* to, U a, U b) {
    vst1q_u8(bytes(to), vreinterpretq_u8_u16(vcombine_u16(vshrn_n_u32(a, 16), vshrn_n_u32(b, 16))));
  }
  static U load_upper16(const std::byte* from) {
    return vshll_n_u16(vreinterpret_u16_u8(vld1_u8(bytes(from))), 16);
  }
  static void store_i8(std::byte* to, const U (&v)[4]) { vst1q_u8(bytes(to), low_bytes(v)); }
  static void store_u8(std::byte* to, const U (&v)[4]) { vst1q_u8(bytes(to), low_bytes(v)); }
  static void store_i4(std::byte* to, const U (&v)[4]) {
    const uint8x16_t b = low_bytes(v);
    const uint8x8_t even = vget_low_u8(vuzp1q_u8(b, b));
    const uint8x8_t odd = vget_low_u8(vuzp2q_u8(b, b));
    vst1_u8(bytes(to), vsli_n_u8(vand_u8(even, vdup_n_u8(15)), odd, 4));
  }
  static void load_i8(const std::byte* from, U (&v)[4]) {
    widen(vreinterpretq_s8_u8(vld1q_u8(bytes(from))), v);
  }
  static void load_i4(const std::byte* from, U (&v)[4]) {
    const int8x8_t b = vreinterpret_s8_u8(vld1_u8(bytes(from)));
    const int8x8_t even = vshr_n_s8(vshl_n_s8(b, 4), 4);
    const int8x8_t odd = vshr_n_s8(b, 4);
    widen(vcombine_s8(vzip1_s8(even, odd), vzip2_s8(even, odd)), v);
  }
  template <int kLeft>
  static void load_f8(const std::byte* from, F (&v)[4]) {
    for (int i = 0; i < 4; i += 2) {
      const uint16x8_t b = vmovl_u8(vld1_u8(bytes(from + 4 * i)));
      const uint16x8_t sign = vshlq_n_u16(vandq_u16(b, vdupq_n_u16(0x80)), 8);
      const uint16x8_t size = vshlq_n_u16(vandq_u16(b, vdupq_n_u16(0x7F)), kLeft);
      const float16x8_t half = vreinterpretq_f16_u16(vorrq_u16(sign, size));
      v[i] = vcvt_f32_f16(vget_low_f16(half));
      v[i + 1] = vcvt_f32_f16(vget_high_f16(half));
    }
  }
  static bool any_byte_above(const std::byte* from, int mask, int top) {
    const uint8x16_t m = vdupq_n_u8(static_cast<uint8_t>(mask));
    uint8x16_t v = vdupq_n_u8(0);
    for (int i = 0; i < 64; i += 16) v = vmaxq_u8(v, vandq_u8(vld1q_u8(bytes(from + i)), m));
    return vmaxvq_u8(v) > top;
  }
  static bool any_byte_is(const std::byte* from, int mask, int value) {
    const uint8x16_t m = vdupq_n_u8(static_cast<uint8_t>(mask));
    const uint8x16_t wanted = vdupq_n_u8(static_cast<uint8_t>(value));
    uint8x16_t found = vdupq_n_u8(0);
    for (int i = 0; i < 64; i += 16)
      found = vorrq_u8(found, vceqq_u8(vandq_u8(vld1q_u8(bytes(from + i)), m), wanted));
    return vmaxvq_u8(found) != 0;
  }

 private:
  static U lane_bits(size_t number) {  // 1, 2, 4, 8, sixteen times as much in the next register
    const U first = {1, 2, 4, 8};
    return vshlq_u32(first, vdupq_n_s32(4 * static_cast<int>(number)));
  }
  static const uint8_t* bytes(const std::byte* p) { return reinterpret_cast<const uint8_t*>(p); }
  static uint8_t* bytes(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }
  static uint8x16_t low_bytes(const U (&v)[4]) {
    const uint16x8_t a = vcombine_u16(vmovn_u32(v[0]), vmovn_u32(v[1]));
    const uint16x8_t b = vcombine_u16(vmovn_u32(v[2]), vmovn_u32(v[3]));
    return vcombine_u8(vmovn_u16(a), vmovn_u16(b));
  }
  static void widen(int8x16_t b, U (&v)[4]) {
    const int16x8_t low = vmovl_s8(vget_low_s8(b));
    const int16x8_t high = vmovl_s8(vget_high_s8(b));
    v[0] = vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(low)));
    v[1] = vreinterpretq_u32_s32(vmovl_s16(vget_high_s16(low)));
    v[2] = vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(high)));
    v[3] = vreinterpretq_u32_s32(vmovl_s16(vget_high_s16(high)));
  }
};

}  // namespace
}  // namespace wirepress
