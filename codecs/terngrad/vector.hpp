// SPDX-License-Identifier: Apache-2.0
// The vector kernels, one source for all: the scale in one pass over a chunk, the draws in a second
// one, for which it lies in the first-level cache.
#pragma once

#include "codecs/common/simd/lanes.hpp"
#include "codecs/terngrad/terngrad.hpp"

namespace wirepress::terngrad {
namespace {

class Vector {
 public:
  static constexpr const char* kName = terngrad::kName;
  static constexpr size_t kValues = terngrad::kValues;
  static constexpr size_t kHeadSize = terngrad::kHeadSize;
  static size_t planes(const Args&) { return kPlanes; }
  explicit Vector(const Args& args) : clip_(clip_of(args)), seed_(args.seed) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const chunks::Run& run,
              std::byte* code) const {
    const float scale = clip_ == 0 ? find_scale<kFeedback, false>(src, residual, run)
                                   : find_scale<kFeedback, true>(src, residual, run);
    if (!chunks::finite(scale)) {
      chunks::write_nan(1, kHeadSize + run.padded / chunks::kGroup * kGroupSize, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    chunks::write(code, scale);
    draw_signs<kFeedback>(src, residual, run, scale, code + kHeadSize);
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    using namespace lanes;
    const float scale = chunks::read<float>(code);
    const std::byte* groups = code + kHeadSize;
    if (!valid(scale, groups, padded / chunks::kGroup * kGroupSize)) return false;
    const Floats zero = splat(chunks::finite(scale) ? 0.0f : scale);
    const Floats positive = splat(scale), negative = splat(-scale);
    uint32_t wrong = 0;
    for (size_t i = 0; i < padded; i += chunks::kGroup, groups += kGroupSize) {
      const uint32_t taken = chunks::read<uint32_t>(groups);
      const uint32_t below = chunks::read<uint32_t>(groups + 4);
      wrong |= below & ~taken;
      for (size_t half = 0; half < 2; ++half) {
        const Floats x = pick(mask(taken >> 16 * half & 0xFFFF), positive, zero);
        lanes::put<kAdd>(dst, i + 16 * half, pick(mask(below >> 16 * half & 0xFFFF), negative, x));
      }
    }
    return wrong == 0;
  }

 private:
  // NaN where a value is not finite.
  template <bool kFeedback, bool kClips>
  float find_scale(const std::byte* src, std::byte* residual, const chunks::Run& run) const {
    using namespace lanes;
    Words most = splat(0u);
    Floats sums = splat(0.0f), squares = splat(0.0f);
    for (size_t i = 0; i < run.padded; i += kLanes) {
      const Floats t = lanes::take<kFeedback>(src, residual, i);
      most = larger(most, without_sign(t));
      if constexpr (kClips) {
        sums = sums + t;
        squares = squares + t * t;
      }
    }
    const uint32_t word = largest(most);
    if (word >= chunks::kInfinity) return chunks::float_of(chunks::kNan);
    const float scale = chunks::float_of(word);
    return kClips ? clipped(scale, clip_, floats_of(sums), floats_of(squares), run.n) : scale;
  }

  template <bool kFeedback>
  void draw_signs(const std::byte* src, std::byte* residual, const chunks::Run& run, float scale,
                  std::byte* groups) const {
    using namespace lanes;
    const Floats zero = splat(0.0f), unit = splat(kDrawUnit), most = splat(scale);
    const Words sign = splat(chunks::kSign);
    Draws draws(seed_, run.first);
    for (size_t i = 0; i < run.padded; i += kLanes) {
      const Floats t = load((kFeedback ? residual : src) + 4 * i);
      const Floats limit = converted(right<32 - kDrawnBits>(draws.next())) * unit * most;
      const Mask taken = limit < as_floats(without_sign(t));
      const Mask negative = both(taken, t < zero);
      std::byte* group = groups + i / chunks::kGroup * kGroupSize + i % chunks::kGroup / 8;
      chunks::write(group, static_cast<uint16_t>(bits(taken)));
      chunks::write(group + 4, static_cast<uint16_t>(bits(negative)));
      if constexpr (kFeedback) {
        const Floats decoded = as_floats(as_words(keep(taken, most)) ^ keep(negative, sign));
        store(residual + 4 * i, t - decoded);
      }
    }
  }

  float clip_;
  uint64_t seed_;
};

}  // namespace
}  // namespace wirepress::terngrad
