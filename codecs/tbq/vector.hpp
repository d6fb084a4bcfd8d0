// SPDX-License-Identifier: Apache-2.0
// The vector kernels, one source for all. With a fixed tau everything is done in one pass; a mean
// needs one before, and then the chunk lies in the first-level cache.
#pragma once

#include "codecs/common/simd/lanes.hpp"
#include "codecs/tbq/tbq.hpp"

namespace wirepress::tbq {
namespace {

class Vector {
 public:
  explicit Vector(const Rule& rule) : rule_(rule) {}

  template <bool kFeedback>
  Marks mark(const std::byte* src, std::byte* residual, const chunks::Run& run,
             std::byte* groups) const {
    using namespace lanes;
    if (!rule_.mean) return mark_values<kFeedback, false>(src, residual, run, rule_.tau, groups);
    Floats sums = splat(0.0f);
    for (size_t i = 0; i < run.padded; i += kLanes)
      sums = sums + as_floats(without_sign(lanes::take<kFeedback>(src, residual, i)));
    const float level = rule_.level(floats_of(sums), run.n);
    if (!chunks::finite(level)) return {false, level, 0};  // as it is if a value is not finite
    return mark_values<kFeedback, true>(kFeedback ? residual : src, residual, run, level, groups);
  }

  template <bool kAdd>
  static void expand(const std::byte* groups, size_t planes, size_t padded, float level,
                     std::byte* dst) {
    if (planes == 1) return expand_planes<1, kAdd>(groups, planes, padded, level, dst);
    expand_planes<0, kAdd>(groups, planes, padded, level, dst);
  }

  static void list(const std::byte* groups, size_t n, std::byte* at) { list_marks(groups, n, at); }

  template <bool kAdd>
  static void fill(float x, size_t n, std::byte* dst) {
    using namespace lanes;
    const size_t whole = n / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) lanes::put<kAdd>(dst, i, splat(x));
    for (size_t i = whole; i < n; ++i) chunks::put<kAdd>(dst, i, x);
  }

 private:
  // kTaken: src holds the sums with the residual already.
  template <bool kFeedback, bool kTaken>
  static Marks mark_values(const std::byte* src, std::byte* residual, const chunks::Run& run,
                           float level, std::byte* groups) {
    using namespace lanes;
    const Floats zero = splat(0.0f), sent = splat(level);
    const Words floor = splat(Rule::floor_of(level)), sign = splat(chunks::kSign);
    Words most = splat(0u);
    Marks marks = {true, level, 0};
    for (size_t i = 0; i < run.padded; i += kLanes) {
      Floats t = load(src + 4 * i);
      if constexpr (kFeedback && !kTaken) t = t + load(residual + 4 * i);
      const Words size = without_sign(t);
      const Mask marked = floor < size;
      const Mask negative = both(marked, t < zero);
      if constexpr (!kTaken) most = larger(most, size);
      std::byte* group = groups + i / chunks::kGroup * kMarkSize + i % chunks::kGroup / 8;
      chunks::write(group, static_cast<uint16_t>(bits(marked)));
      chunks::write(group + 4, static_cast<uint16_t>(bits(negative)));
      marks.count += static_cast<size_t>(std::popcount(bits(marked)));
      if constexpr (kFeedback) {
        const Words decoded = as_words(keep(marked, sent)) ^ keep(negative, sign);
        store(residual + 4 * i, t - as_floats(decoded));
      }
    }
    marks.finite = largest(most) < chunks::kInfinity;
    return marks;
  }

  // kPlanes 0: as many as `planes` says.
  template <size_t kPlanes, bool kAdd>
  static void expand_planes(const std::byte* groups, size_t planes, size_t padded, float level,
                            std::byte* dst) {
    using namespace lanes;
    if constexpr (kPlanes != 0) planes = kPlanes;
    const Floats unit = splat(level);
    const Words sign = splat(chunks::kSign);
    for (size_t i = 0; i < padded; i += kLanes) {
      const std::byte* group =
          groups + i / chunks::kGroup * 4 * (planes + 1) + i % chunks::kGroup / 8;
      const Mask negative = mask(chunks::read<uint16_t>(group + 4 * planes));
      Floats size;
      if constexpr (kPlanes == 1) {
        size = keep(mask(chunks::read<uint16_t>(group)), unit);
      } else {
        Words magnitude = splat(0u);
        for (size_t p = 0; p < planes; ++p)
          magnitude = magnitude | keep(mask(chunks::read<uint16_t>(group + 4 * p)), splat(1u << p));
        size = converted(magnitude) * unit;
      }
      lanes::put<kAdd>(dst, i, as_floats(as_words(size) ^ keep(negative, sign)));
    }
  }

  Rule rule_;
};

}  // namespace
}  // namespace wirepress::tbq
