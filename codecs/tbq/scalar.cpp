// SPDX-License-Identifier: Apache-2.0
// The reference kernel: spec.md, chunk by chunk.
#include "codecs/tbq/tbq.hpp"

namespace wirepress {
namespace {

using namespace chunks;

class Tbq {
 public:
  explicit Tbq(const tbq::Rule& rule) : rule_(rule) {}

  template <bool kFeedback>
  tbq::Marks mark(const std::byte* src, std::byte* residual, const Run& run,
                  std::byte* groups) const {
    Sums sums{};
    uint32_t largest = 0;  // absolute values order as their words do, NaNs last
    for (size_t i = 0; i < run.padded; ++i) {
      const float t = take<kFeedback>(src, residual, i);
      sums[i % kSums] += std::fabs(t);
      largest = std::max(largest, word_of(t) & ~kSign);
    }
    const float level = rule_.mean ? rule_.level(sums, run.n) : rule_.tau;
    if (largest >= kInfinity || !finite(level)) return {false, level, 0};
    tbq::Marks marks = {true, level, 0};
    for (size_t i = 0; i < run.padded; i += kGroup, groups += tbq::kMarkSize) {
      uint32_t marked = 0, negative = 0;
      for (size_t j = 0; j < kGroup; ++j) {
        const float t = read<float>((kFeedback ? residual : src) + 4 * (i + j));
        const bool mark = (word_of(t) & ~kSign) > tbq::Rule::floor_of(level);
        const bool below = mark && t < 0;
        marked |= uint32_t{mark} << j;
        negative |= uint32_t{below} << j;
        if constexpr (kFeedback)
          write(residual + 4 * (i + j), t - (below ? -level : mark ? level : 0));
      }
      write(groups, marked);
      write(groups + 4, negative);
      marks.count += static_cast<size_t>(std::popcount(marked));
    }
    return marks;
  }

  template <bool kAdd>
  static void expand(const std::byte* groups, size_t planes, size_t padded, float level,
                     std::byte* dst) {
    for (size_t i = 0; i < padded; i += kGroup, groups += 4 * (planes + 1)) {
      for (size_t j = 0; j < kGroup; ++j) {
        uint32_t magnitude = 0;
        for (size_t p = 0; p < planes; ++p)
          magnitude |= (read<uint32_t>(groups + 4 * p) >> j & 1) << p;
        const float size = static_cast<float>(magnitude) * level;
        const bool negative = (read<uint32_t>(groups + 4 * planes) >> j & 1) != 0;
        put<kAdd>(dst, i + j, negative ? -size : size);
      }
    }
  }

  static void list(const std::byte* groups, size_t n, std::byte* at) {
    tbq::list_marks(groups, n, at);
  }

  template <bool kAdd>
  static void fill(float x, size_t n, std::byte* dst) {
    for (size_t i = 0; i < n; ++i) put<kAdd>(dst, i, x);
  }

 private:
  tbq::Rule rule_;
};

}  // namespace

extern const Kernel tbq_scalar;
const Kernel tbq_scalar = tbq::kernel<Tbq>("scalar", always_usable);

}  // namespace wirepress
