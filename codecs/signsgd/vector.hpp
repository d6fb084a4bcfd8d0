// SPDX-License-Identifier: Apache-2.0
// The vector kernels, one source for all: sum and bits in one pass, and with feedback a second one
// over the chunk, which then lies in the first-level cache.
#pragma once

#include "codecs/common/simd/lanes.hpp"
#include "codecs/signsgd/signsgd.hpp"

namespace wirepress::signsgd {
namespace {

class Vector {
 public:
  static constexpr const char* kName = signsgd::kName;
  static constexpr size_t kValues = signsgd::kValues;
  static constexpr size_t kHeadSize = signsgd::kHeadSize;
  static size_t planes(const Args&) { return 1; }
  explicit Vector(const Args& args) : mean_(args.value[kScale] == kMean) {}

  template <bool kFeedback>
  // Inlined, so that whole chunks have a loop of constant length.
  [[gnu::always_inline]] inline void encode(const std::byte* src, std::byte* residual,
                                            const chunks::Run& run, std::byte* code) const {
    using namespace lanes;
    const Floats zero = splat(0.0f);
    Floats sums = zero;
    for (size_t i = 0; i < run.padded; i += kLanes) {
      const Floats t = lanes::take<kFeedback>(src, residual, i);
      sums = sums + as_floats(without_sign(t));
      chunks::write(code + kHeadSize + i / 8, static_cast<uint16_t>(bits(t < zero)));
    }
    const float scale = scale_of(mean_, floats_of(sums), run.n);
    if (!chunks::finite(scale)) {
      chunks::write_nan(1, kHeadSize + run.padded / 8, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    chunks::write(code, scale);
    if constexpr (kFeedback) {
      for (size_t i = 0; i < run.padded; i += kLanes) {
        const Floats t = load(residual + 4 * i);
        store(residual + 4 * i, t - pick(t < zero, splat(-scale), splat(scale)));
      }
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    using namespace lanes;
    const float scale = chunks::read<float>(code);
    if (!valid(mean_, scale, code + kHeadSize, padded / 8)) return false;
    // The NaN of a chunk that is not finite has no bits, so that it is never turned.
    const Floats positive = splat(scale), negative = splat(-scale);
    for (size_t i = 0; i < padded; i += kLanes) {
      const Mask below = mask(chunks::read<uint16_t>(code + kHeadSize + i / 8));
      lanes::put<kAdd>(dst, i, pick(below, negative, positive));
    }
    return true;
  }

 private:
  bool mean_;
};

}  // namespace
}  // namespace wirepress::signsgd
