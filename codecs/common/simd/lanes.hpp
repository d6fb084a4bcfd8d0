// SPDX-License-Identifier: Apache-2.0
// Sixteen 32-bit lanes in as many registers as the instruction set needs, so that one source serves
// the vector kernels of a codec. Only for kernel files that are compiled for an instruction set:
// everything here has internal linkage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/common/random.hpp"

#if defined(__AVX512F__)
#include "codecs/common/simd/avx512.hpp"
#elif defined(__AVX2__)
#include "codecs/common/simd/avx2.hpp"
#else
#include "codecs/common/simd/neon.hpp"
#endif

#define WPR_LANES [[maybe_unused, gnu::always_inline]] static inline

namespace wirepress::lanes {
namespace {

#if defined(__AVX512F__)
using Set = Avx512;
#elif defined(__AVX2__)
using Set = Avx2;
#else
using Set = Neon;
#endif

constexpr size_t kLanes = 16;
constexpr size_t kRegisters = kLanes / Set::kLanes;

// Floats: float32. Words: uint32. Mask: one truth per lane; bits() of a mask has lane 0 in bit 0.
struct Floats {
  Set::F v[kRegisters];
};
struct Words {
  Set::U v[kRegisters];
};
struct Mask {
  Set::M v[kRegisters];
};

// What `function` makes of each register's number.
template <typename To, typename Function>
WPR_LANES To each(Function function) {
  if constexpr (kRegisters == 1)
    return {{function(0)}};
  else if constexpr (kRegisters == 2)
    return {{function(0), function(1)}};
  else
    return {{function(0), function(1), function(2), function(3)}};
}

// Bytes of a register.
constexpr size_t kRegisterSize = 4 * Set::kLanes;

WPR_LANES Floats load(const std::byte* from) {
  return each<Floats>([&](size_t i) { return Set::load_float(from + kRegisterSize * i); });
}
WPR_LANES void store(std::byte* to, Floats a) {
  for (size_t i = 0; i < kRegisters; ++i) Set::store_float(to + kRegisterSize * i, a.v[i]);
}
WPR_LANES Words load_words(const uint32_t* from) {
  return each<Words>([&](size_t i) {
    return Set::load(reinterpret_cast<const std::byte*>(from) + kRegisterSize * i);
  });
}
WPR_LANES Floats splat(float x) {
  return each<Floats>([&](size_t) { return Set::set_float(x); });
}
WPR_LANES Words splat(uint32_t x) {
  return each<Words>([&](size_t) { return Set::set(x); });
}
WPR_LANES Words as_words(Floats a) {
  return each<Words>([&](size_t i) { return Set::as_bits(a.v[i]); });
}
WPR_LANES Floats as_floats(Words a) {
  return each<Floats>([&](size_t i) { return Set::as_float(a.v[i]); });
}
WPR_LANES Floats operator+(Floats a, Floats b) {
  return each<Floats>([&](size_t i) { return Set::add(a.v[i], b.v[i]); });
}
WPR_LANES Floats operator-(Floats a, Floats b) {
  return each<Floats>([&](size_t i) { return Set::subtract(a.v[i], b.v[i]); });
}
WPR_LANES Floats operator*(Floats a, Floats b) {
  return each<Floats>([&](size_t i) { return Set::multiply(a.v[i], b.v[i]); });
}
WPR_LANES Words operator+(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::add(a.v[i], b.v[i]); });
}
WPR_LANES Words operator*(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::multiply(a.v[i], b.v[i]); });
}
WPR_LANES Words operator&(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::both(a.v[i], b.v[i]); });
}
WPR_LANES Words operator|(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::either(a.v[i], b.v[i]); });
}
WPR_LANES Words operator^(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::differ(a.v[i], b.v[i]); });
}
template <int kBits>
WPR_LANES Words right(Words a) {
  return each<Words>([&](size_t i) { return Set::right<kBits>(a.v[i]); });
}
WPR_LANES Words larger(Words a, Words b) {  // unsigned, as smaller()
  return each<Words>([&](size_t i) { return Set::most(a.v[i], b.v[i]); });
}
WPR_LANES Words smaller(Words a, Words b) {
  return each<Words>([&](size_t i) { return Set::least(a.v[i], b.v[i]); });
}
WPR_LANES Words truncated(Floats a) {
  return each<Words>([&](size_t i) { return Set::truncate(a.v[i]); });
}
WPR_LANES Floats converted(Words a) {
  return each<Floats>([&](size_t i) { return Set::from_int(a.v[i]); });
}
WPR_LANES Mask operator<(Floats a, Floats b) {
  return each<Mask>([&](size_t i) { return Set::less(a.v[i], b.v[i]); });
}
WPR_LANES Mask operator<(Words a, Words b) {  // signed
  return each<Mask>([&](size_t i) { return Set::less(a.v[i], b.v[i]); });
}
WPR_LANES Words keep(Mask m, Words a) {
  return each<Words>([&](size_t i) { return Set::keep(m.v[i], a.v[i]); });
}
WPR_LANES Floats keep(Mask m, Floats a) { return as_floats(keep(m, as_words(a))); }
WPR_LANES Floats pick(Mask m, Floats yes, Floats no) {
  return each<Floats>([&](size_t i) { return Set::pick(m.v[i], yes.v[i], no.v[i]); });
}
// sum + v where m is set, or is not; sum elsewhere. No sum is -0.
WPR_LANES Floats add_where(Mask m, Floats sum, Floats v) {
  return each<Floats>([&](size_t i) { return Set::add_where(m.v[i], sum.v[i], v.v[i]); });
}
WPR_LANES Floats add_unless(Mask m, Floats sum, Floats v) {
  return each<Floats>([&](size_t i) { return Set::add_unless(m.v[i], sum.v[i], v.v[i]); });
}
WPR_LANES Mask both(Mask a, Mask b) {
  return each<Mask>([&](size_t i) { return Set::both_masks(a.v[i], b.v[i]); });
}
WPR_LANES Mask mask(uint32_t bits) {
  return each<Mask>([&](size_t i) { return Set::mask(bits, i); });
}
WPR_LANES uint32_t bits(Mask m) { return Set::bits(m.v); }
template <int kBit>
WPR_LANES uint32_t plane(Words a) {
  return bits(each<Mask>([&](size_t i) { return Set::template has_bit<kBit>(a.v[i]); }));
}

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

WPR_LANES uint32_t largest(Words a) {
  Set::U most = a.v[0];
  for (size_t i = 1; i < kRegisters; ++i) most = Set::most(most, a.v[i]);
  return Set::greatest(most);
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
