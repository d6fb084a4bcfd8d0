// SPDX-License-Identifier: Apache-2.0
// The kernel for vectors V (codecs/common/simd). Processors convert to nearest even as IEEE 754
// says, denormals too, whatever mode they are in; stochastic rounding is done with integers.
#pragma once

#include "codecs/fp16/fp16.hpp"

namespace wirepress {
namespace {

template <typename V>
struct Fp16Simd : Fp16Layout, VectorSums<V> {
  using U = typename V::U;
  using Fp16Layout::Fp16Layout;

  template <bool kSaturate>
  static U clamp(U size) {
    if constexpr (!kSaturate) return size;
    return V::if_above(V::set(kFloatInfinity), size, V::least(size, V::set(kLargest)), size);
  }

  template <bool kSaturate>
  void encode_nearest(const std::byte* x, size_t n, std::byte* out) const {
    for (size_t i = 0; i < n; i += V::kLanes) {
      const U word = V::load(x + 4 * i);
      const U size = V::both(word, V::set(~kFloatSign));
      const U kept = kSaturate ? V::either(clamp<kSaturate>(size), V::differ(word, size)) : word;
      const U one_nan = V::if_above(size, V::set(kFloatInfinity), V::set(kFloatNan), kept);
      V::store_half(out + 2 * i, V::as_float(one_nan));
    }
  }

  // The code in the upper half.
  template <bool kSaturate>
  U code(const std::byte* x, uint64_t index) const {
    const U word = V::load(x);
    const U before = V::both(word, V::set(~kFloatSign));
    const U size = clamp<kSaturate>(before);
    const U random = random_vector<V>(seed, index);
    const U normal = V::subtract(V::template right<13>(V::add(size, V::template right<19>(random))),
                                 V::set(kRebias));
    // Counts above 31 and below 1 belong to values that are 0, or not denormal.
    const U shift = V::subtract(V::set(kDenormalShift), V::template right<23>(size));
    const U one = V::either(V::both(size, V::set(0x7FFFFF)), V::set(0x800000));
    const U denormal =
        V::right(V::add(one, V::right(random, V::subtract(V::set(32), shift))), shift);
    U half =
        V::if_above(V::set(kSmallest), size, denormal, V::least(normal, V::set(kHalfInfinity)));
    half = V::either(V::template left<16>(half), V::differ(word, before));
    return V::if_above(before, V::set(kFloatInfinity), V::set(kHalfNan << 16), half);
  }

  template <bool kSaturate>
  void encode_stochastic(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    constexpr size_t kStep = 2 * V::kLanes;
    for (size_t i = 0; i < n; i += kStep, x += 4 * kStep, out += 2 * kStep)
      V::store_upper16(out, code<kSaturate>(x, index + i),
                       code<kSaturate>(x + 4 * V::kLanes, index + i + V::kLanes));
  }

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    if (stochastic)
      return saturate ? encode_stochastic<true>(x, n, index, out)
                      : encode_stochastic<false>(x, n, index, out);
    return saturate ? encode_nearest<true>(x, n, out) : encode_nearest<false>(x, n, out);
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    for (size_t i = 0; i < n; i += V::kLanes) V::store_float(x + 4 * i, V::load_half(in + 2 * i));
    return true;
  }
};

}  // namespace
}  // namespace wirepress
