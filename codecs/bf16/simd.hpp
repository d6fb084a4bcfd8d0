// SPDX-License-Identifier: Apache-2.0
// The kernel for vectors V (codecs/common/simd), 2 V::kLanes values at a time. Integers only:
// hardware that converts to bfloat16 flushes denormals.
#pragma once

#include "codecs/bf16/bf16.hpp"

namespace wirepress {
namespace {

template <typename V>
struct Bf16Simd : Bf16Layout, VectorSums<V> {
  using U = typename V::U;
  using Bf16Layout::Bf16Layout;

  // The code in the upper half.
  template <bool kStochastic, bool kSaturate>
  U code(const std::byte* x, uint64_t index) const {
    const U word = V::load(x);
    const U infinity = V::set(kFloatInfinity);
    U size = V::both(word, V::set(~kFloatSign));
    const U sign = V::differ(word, size);
    const U before = size;
    if constexpr (kSaturate)
      size = V::if_above(infinity, size, V::least(size, V::set(kLargest)), size);
    U up;
    if constexpr (kStochastic)
      up = V::template right<16>(random_vector<V>(seed, index));
    else
      up = V::add(V::both(V::template right<16>(size), V::set(1)), V::set(0x7FFF));
    return V::if_above(before, infinity, V::set(kNan), V::either(V::add(size, up), sign));
  }

  template <bool kStochastic, bool kSaturate>
  void encode_all(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    constexpr size_t kStep = 2 * V::kLanes;
    for (size_t i = 0; i < n; i += kStep, x += 4 * kStep, out += 2 * kStep)
      V::store_upper16(out, code<kStochastic, kSaturate>(x, index + i),
                       code<kStochastic, kSaturate>(x + 4 * V::kLanes, index + i + V::kLanes));
  }

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    with_settings([&]<bool kStochastic, bool kSaturate>() {
      encode_all<kStochastic, kSaturate>(x, n, index, out);
    });
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    for (size_t i = 0; i < n; i += V::kLanes) V::store(x + 4 * i, V::load_upper16(in + 2 * i));
    return true;
  }
};

}  // namespace
}  // namespace wirepress
