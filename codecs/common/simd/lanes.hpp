// SPDX-License-Identifier: Apache-2.0
// Sixteen 32-bit lanes on AVX-512, AVX2 or NEON, so that one source serves the vector kernels of a
// codec. Only for kernel files that are compiled for one of them, one file for each: everything
// here has internal linkage.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "codecs/common/random.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#define WPR_LANES [[maybe_unused, gnu::always_inline]] static inline

namespace wirepress::lanes {

constexpr size_t kLanes = 16;

// Floats: float32. Words: uint32; comparisons take them as signed. Mask: one truth per lane.
// bits() of a mask has lane 0 in bit 0.
namespace {

#if defined(__AVX512F__)

struct Floats {
  __m512 v;
};
struct Words {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

// GCC 12 warns of what its forms without a mask leave undefined; with this one they are the same.
constexpr __mmask16 kAll = 0xFFFF;

WPR_LANES Floats load(const std::byte* p) { return {_mm512_loadu_ps(p)}; }
WPR_LANES void store(std::byte* p, Floats a) { _mm512_storeu_ps(p, a.v); }
WPR_LANES Floats splat(float x) { return {_mm512_set1_ps(x)}; }
WPR_LANES Words splat(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
WPR_LANES Words load_words(const void* p) { return {_mm512_loadu_si512(p)}; }
WPR_LANES void store_words(void* p, Words a) { _mm512_storeu_si512(p, a.v); }
WPR_LANES Words as_words(Floats a) { return {_mm512_castps_si512(a.v)}; }
WPR_LANES Floats as_floats(Words a) { return {_mm512_castsi512_ps(a.v)}; }
WPR_LANES Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
WPR_LANES Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
WPR_LANES Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
WPR_LANES Mask operator<(Floats a, Floats b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
WPR_LANES Words operator+(Words a, Words b) { return {_mm512_add_epi32(a.v, b.v)}; }
WPR_LANES Words operator*(Words a, Words b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
WPR_LANES Words operator&(Words a, Words b) { return {_mm512_and_si512(a.v, b.v)}; }
WPR_LANES Words operator|(Words a, Words b) { return {_mm512_or_si512(a.v, b.v)}; }
WPR_LANES Words operator^(Words a, Words b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int kBits>
WPR_LANES Words right(Words a) {
  return {_mm512_maskz_srli_epi32(kAll, a.v, kBits)};
}
WPR_LANES Mask operator<(Words a, Words b) { return {_mm512_cmplt_epi32_mask(a.v, b.v)}; }
WPR_LANES Words larger(Words a, Words b) { return {_mm512_maskz_max_epi32(kAll, a.v, b.v)}; }
WPR_LANES Words smaller(Words a, Words b) { return {_mm512_maskz_min_epi32(kAll, a.v, b.v)}; }
WPR_LANES Words truncated(Floats a) { return {_mm512_maskz_cvttps_epi32(kAll, a.v)}; }
WPR_LANES Floats converted(Words a) { return {_mm512_maskz_cvtepi32_ps(kAll, a.v)}; }
WPR_LANES Floats keep(Mask m, Floats a) { return {_mm512_maskz_mov_ps(m.v, a.v)}; }
WPR_LANES Words keep(Mask m, Words a) { return {_mm512_maskz_mov_epi32(m.v, a.v)}; }
WPR_LANES Floats pick(Mask m, Floats yes, Floats no) {
  return {_mm512_mask_blend_ps(m.v, no.v, yes.v)};
}
WPR_LANES Mask both(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
WPR_LANES uint32_t bits(Mask m) { return m.v; }
WPR_LANES Mask mask(uint32_t bits) { return {static_cast<__mmask16>(bits)}; }
template <int kBit>
WPR_LANES uint32_t plane(Words a) {
  return _mm512_test_epi32_mask(a.v, _mm512_set1_epi32(1 << kBit));
}

#elif defined(__AVX2__)

struct Floats {
  __m256 a, b;
};
struct Words {
  __m256i a, b;
};
struct Mask {
  __m256 a, b;
};

WPR_LANES Floats load(const std::byte* p) {
  const float* at = reinterpret_cast<const float*>(p);
  return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)};
}
WPR_LANES void store(std::byte* p, Floats x) {
  float* at = reinterpret_cast<float*>(p);
  _mm256_storeu_ps(at, x.a);
  _mm256_storeu_ps(at + 8, x.b);
}
WPR_LANES Floats splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
WPR_LANES Words splat(uint32_t x) {
  return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
}
WPR_LANES Words load_words(const void* p) {
  const __m256i* at = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
WPR_LANES void store_words(void* p, Words x) {
  __m256i* at = static_cast<__m256i*>(p);
  _mm256_storeu_si256(at, x.a);
  _mm256_storeu_si256(at + 1, x.b);
}
WPR_LANES Words as_words(Floats x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
WPR_LANES Floats as_floats(Words x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
WPR_LANES Floats operator+(Floats x, Floats y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
WPR_LANES Floats operator-(Floats x, Floats y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
WPR_LANES Floats operator*(Floats x, Floats y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
WPR_LANES Mask operator<(Floats x, Floats y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
WPR_LANES Words operator+(Words x, Words y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
WPR_LANES Words operator*(Words x, Words y) {
  return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)};
}
WPR_LANES Words operator&(Words x, Words y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
WPR_LANES Words operator|(Words x, Words y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
WPR_LANES Words operator^(Words x, Words y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
template <int kBits>
WPR_LANES Words right(Words x) {
  return {_mm256_srli_epi32(x.a, kBits), _mm256_srli_epi32(x.b, kBits)};
}
WPR_LANES Mask operator<(Words x, Words y) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(y.a, x.a)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(y.b, x.b))};
}
WPR_LANES Words larger(Words x, Words y) {
  return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)};
}
WPR_LANES Words smaller(Words x, Words y) {
  return {_mm256_min_epi32(x.a, y.a), _mm256_min_epi32(x.b, y.b)};
}
WPR_LANES Words truncated(Floats x) { return {_mm256_cvttps_epi32(x.a), _mm256_cvttps_epi32(x.b)}; }
WPR_LANES Floats converted(Words x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
WPR_LANES Floats keep(Mask m, Floats x) {
  return {_mm256_and_ps(m.a, x.a), _mm256_and_ps(m.b, x.b)};
}
WPR_LANES Words keep(Mask m, Words x) { return as_words(keep(m, as_floats(x))); }
WPR_LANES Floats pick(Mask m, Floats yes, Floats no) {
  return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}
WPR_LANES Mask both(Mask x, Mask y) { return {_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)}; }
WPR_LANES uint32_t bits(Mask m) {
  return static_cast<uint32_t>(_mm256_movemask_ps(m.a)) |
         static_cast<uint32_t>(_mm256_movemask_ps(m.b)) << 8;
}
WPR_LANES Mask mask(uint32_t bits) {
  const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i high = _mm256_slli_epi32(low, 8);
  const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, low), low)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, high), high))};
}
template <int kBit>
WPR_LANES uint32_t plane(Words x) {
  return bits({_mm256_castsi256_ps(_mm256_slli_epi32(x.a, 31 - kBit)),
               _mm256_castsi256_ps(_mm256_slli_epi32(x.b, 31 - kBit))});
}

#else  // NEON

struct Floats {
  float32x4_t v[4];
};
struct Words {
  uint32x4_t v[4];
};
struct Mask {
  uint32x4_t v[4];
};

// One instruction on each of the four quarters.
template <typename To, typename Function>
WPR_LANES To each(Function function) {
  return {{function(0), function(1), function(2), function(3)}};
}

WPR_LANES Floats load(const std::byte* p) {
  return each<Floats>([&](int i) {
    return vreinterpretq_f32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p) + 16 * i));
  });
}
WPR_LANES void store(std::byte* p, Floats a) {
  for (int i = 0; i < 4; ++i)
    vst1q_u8(reinterpret_cast<uint8_t*>(p) + 16 * i, vreinterpretq_u8_f32(a.v[i]));
}
WPR_LANES Floats splat(float x) {
  return each<Floats>([&](int) { return vdupq_n_f32(x); });
}
WPR_LANES Words splat(uint32_t x) {
  return each<Words>([&](int) { return vdupq_n_u32(x); });
}
WPR_LANES Words load_words(const void* p) {
  return each<Words>([&](int i) { return vld1q_u32(static_cast<const uint32_t*>(p) + 4 * i); });
}
WPR_LANES void store_words(void* p, Words a) {
  for (int i = 0; i < 4; ++i) vst1q_u32(static_cast<uint32_t*>(p) + 4 * i, a.v[i]);
}
WPR_LANES Words as_words(Floats a) {
  return each<Words>([&](int i) { return vreinterpretq_u32_f32(a.v[i]); });
}
WPR_LANES Floats as_floats(Words a) {
  return each<Floats>([&](int i) { return vreinterpretq_f32_u32(a.v[i]); });
}
WPR_LANES Floats operator+(Floats a, Floats b) {
  return each<Floats>([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
WPR_LANES Floats operator-(Floats a, Floats b) {
  return each<Floats>([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
WPR_LANES Floats operator*(Floats a, Floats b) {
  return each<Floats>([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
WPR_LANES Mask operator<(Floats a, Floats b) {
  return each<Mask>([&](int i) { return vcltq_f32(a.v[i], b.v[i]); });
}
WPR_LANES Words operator+(Words a, Words b) {
  return each<Words>([&](int i) { return vaddq_u32(a.v[i], b.v[i]); });
}
WPR_LANES Words operator*(Words a, Words b) {
  return each<Words>([&](int i) { return vmulq_u32(a.v[i], b.v[i]); });
}
WPR_LANES Words operator&(Words a, Words b) {
  return each<Words>([&](int i) { return vandq_u32(a.v[i], b.v[i]); });
}
WPR_LANES Words operator|(Words a, Words b) {
  return each<Words>([&](int i) { return vorrq_u32(a.v[i], b.v[i]); });
}
WPR_LANES Words operator^(Words a, Words b) {
  return each<Words>([&](int i) { return veorq_u32(a.v[i], b.v[i]); });
}
template <int kBits>
WPR_LANES Words right(Words a) {
  return each<Words>([&](int i) { return vshrq_n_u32(a.v[i], kBits); });
}
WPR_LANES int32x4_t as_signed(uint32x4_t a) { return vreinterpretq_s32_u32(a); }
WPR_LANES Mask operator<(Words a, Words b) {
  return each<Mask>([&](int i) { return vcltq_s32(as_signed(a.v[i]), as_signed(b.v[i])); });
}
WPR_LANES Words larger(Words a, Words b) {
  return each<Words>([&](int i) {
    return vreinterpretq_u32_s32(vmaxq_s32(as_signed(a.v[i]), as_signed(b.v[i])));
  });
}
WPR_LANES Words smaller(Words a, Words b) {
  return each<Words>([&](int i) {
    return vreinterpretq_u32_s32(vminq_s32(as_signed(a.v[i]), as_signed(b.v[i])));
  });
}
WPR_LANES Words truncated(Floats a) {
  return each<Words>([&](int i) { return vreinterpretq_u32_s32(vcvtq_s32_f32(a.v[i])); });
}
WPR_LANES Floats converted(Words a) {
  return each<Floats>([&](int i) { return vcvtq_f32_s32(as_signed(a.v[i])); });
}
WPR_LANES Words keep(Mask m, Words a) {
  return each<Words>([&](int i) { return vandq_u32(m.v[i], a.v[i]); });
}
WPR_LANES Floats keep(Mask m, Floats a) { return as_floats(keep(m, as_words(a))); }
WPR_LANES Floats pick(Mask m, Floats yes, Floats no) {
  return each<Floats>([&](int i) { return vbslq_f32(m.v[i], yes.v[i], no.v[i]); });
}
WPR_LANES Mask both(Mask a, Mask b) {
  return each<Mask>([&](int i) { return vandq_u32(a.v[i], b.v[i]); });
}
WPR_LANES Mask lane_bits() {
  const uint32x4_t first = {1, 2, 4, 8};
  return {{first, vshlq_n_u32(first, 4), vshlq_n_u32(first, 8), vshlq_n_u32(first, 12)}};
}
WPR_LANES uint32_t bits(Mask m) {
  const Mask own = both(m, lane_bits());
  return vaddvq_u32(vorrq_u32(vorrq_u32(own.v[0], own.v[1]), vorrq_u32(own.v[2], own.v[3])));
}
WPR_LANES Mask mask(uint32_t bits) {
  const Mask own = lane_bits();
  return each<Mask>([&](int i) { return vtstq_u32(vdupq_n_u32(bits), own.v[i]); });
}
template <int kBit>
WPR_LANES uint32_t plane(Words a) {
  return bits(each<Mask>([&](int i) { return vtstq_u32(a.v[i], vdupq_n_u32(1u << kBit)); }));
}

#endif

WPR_LANES Words counted() {  // 0, 1, 2 ...
  static constexpr uint32_t kCounted[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};
  return load_words(kCounted);
}

WPR_LANES Words without_sign(Floats a) { return as_words(a) & splat(0x7FFFFFFFu); }

WPR_LANES std::array<float, kLanes> floats_of(Floats a) {
  std::array<float, kLanes> out;
  store(reinterpret_cast<std::byte*>(out.data()), a);
  return out;
}

// Sixteen values from value i on of what is encoded; with feedback they are also left in
// `residual`.
template <bool kFeedback>
WPR_LANES Floats take(const std::byte* src, std::byte* residual, size_t i) {
  const Floats x = load(src + 4 * i);
  if constexpr (!kFeedback) return x;
  const Floats t = x + load(residual + 4 * i);
  store(residual + 4 * i, t);
  return t;
}

template <bool kAdd>
WPR_LANES void put(std::byte* dst, size_t i, Floats decoded) {
  store(dst + 4 * i, kAdd ? load(dst + 4 * i) + decoded : decoded);
}

WPR_LANES uint32_t largest(Words a) {  // of lanes that are not negative
  std::array<uint32_t, kLanes> out;
  store_words(out.data(), a);
  uint32_t most = 0;
  for (const uint32_t word : out) most = word > most ? word : most;
  return most;
}

// The draws of elements index, index + 1 ... in lanes, sixteen at a time.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t index) : seed_(seed) { start(index); }

  [[gnu::always_inline]] Words next() {
    if (static_cast<uint32_t>(index_) > UINT32_MAX - kLanes) [[unlikely]]
      return next_across();
    Words h = sum_ ^ mask_;
    sum_ = sum_ + splat(static_cast<uint32_t>(kLanes) * kDrawStep);
    index_ += kLanes;
    h = (h ^ right<16>(h)) * splat(kDrawMix1);
    h = (h ^ right<15>(h)) * splat(kDrawMix2);
    return h ^ right<16>(h);
  }

 private:
  void start(uint64_t index) {
    const DrawStart first = draw_start(seed_, index);
    index_ = index;
    sum_ = splat(first.sum) + counted() * splat(kDrawStep);
    mask_ = splat(first.mask);
  }
  // The upper half of the index changes in these lanes or behind them.
  [[gnu::noinline]] Words next_across() {
    uint32_t drawn[kLanes];
    for (size_t i = 0; i < kLanes; ++i) drawn[i] = random_bits(seed_, index_ + i);
    start(index_ + kLanes);
    return load_words(drawn);
  }

  uint64_t seed_;
  uint64_t index_;
  Words sum_;
  Words mask_;
};

}  // namespace
}  // namespace wirepress::lanes
