// SPDX-License-Identifier: Apache-2.0
// The vector kernels, one source for all: sums and bits in one pass, and with feedback a second one
// over the chunk, which then lies in the first-level cache.
#pragma once

#include "codecs/common/simd/lanes.hpp"
#include "codecs/onebit/onebit.hpp"

namespace wirepress::onebit {
namespace {

class Vector {
 public:
  static constexpr const char* kName = onebit::kName;
  static constexpr size_t kValues = onebit::kValues;
  static constexpr size_t kHeadSize = onebit::kHeadSize;
  static size_t planes(const Args&) { return 1; }
  static size_t values(const Args& args) { return onebit::values(args); }
  explicit Vector(const Args&) {}

  template <bool kFeedback>
  // Inlined, so that whole chunks have a loop of constant length.
  [[gnu::always_inline]] inline void encode(const std::byte* src, std::byte* residual,
                                            const chunks::Run& run, std::byte* code) const {
    using namespace lanes;
    const Floats zero = splat(0.0f);
    Floats negative = zero, other = zero;
    size_t n_negative = 0;
    std::byte* out = code + kHeadSize;
    for (size_t i = 0; i < run.padded; i += kLanes) {
      const Floats t = lanes::take<kFeedback>(src, residual, i);
      const Mask below = t < zero;
      negative = add_where(below, negative, t);
      other = add_unless(below, other, t);
      n_negative += static_cast<size_t>(std::popcount(bits(below)));
      chunks::write(out + i / 8, static_cast<uint16_t>(bits(below)));
    }
    const Means means =
        Means::of(floats_of(negative), n_negative, floats_of(other), run.n - n_negative);
    if (!means.finite()) {
      chunks::write_nan(2, kHeadSize + run.padded / 8, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    means.write(code);
    if constexpr (kFeedback) {
      for (size_t i = 0; i < run.padded; i += kLanes) {
        const Floats t = load(residual + 4 * i);
        store(residual + 4 * i, t - pick(t < zero, splat(means.negative), splat(means.other)));
      }
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    using namespace lanes;
    const Means means = Means::read(code);
    if (!means.valid(code + kHeadSize, padded / 8)) return false;
    const Floats negative = splat(means.negative), other = splat(means.other);
    for (size_t i = 0; i < padded; i += kLanes) {
      const Mask below = mask(chunks::read<uint16_t>(code + kHeadSize + i / 8));
      lanes::put<kAdd>(dst, i, pick(below, negative, other));
    }
    return true;
  }
};

}  // namespace
}  // namespace wirepress::onebit
