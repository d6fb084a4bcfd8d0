// SPDX-License-Identifier: Apache-2.0
// The reference kernel: spec.md, chunk by chunk.
#include "codecs/common/random.hpp"
#include "codecs/terngrad/terngrad.hpp"

namespace wirepress {
namespace {

using namespace chunks;

class Terngrad {
 public:
  static constexpr const char* kName = terngrad::kName;
  static constexpr size_t kValues = terngrad::kValues;
  static constexpr size_t kHeadSize = terngrad::kHeadSize;
  static size_t planes(const Args&) { return terngrad::kPlanes; }
  explicit Terngrad(const Args& args) : clip_(terngrad::clip_of(args)), seed_(args.seed) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const Run& run, std::byte* code) const {
    const float scale = find_scale<kFeedback>(src, residual, run);
    std::byte* groups = code + kHeadSize;
    if (!finite(scale)) {
      write_nan(1, kHeadSize + run.padded / kGroup * terngrad::kGroupSize, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    write(code, scale);
    std::byte* values = residual;  // with feedback: t is there
    for (size_t i = 0; i < run.padded; i += kGroup, groups += terngrad::kGroupSize) {
      uint32_t taken = 0, negative = 0;
      for (size_t j = 0; j < kGroup; ++j) {
        const float t = read<float>((kFeedback ? values : src) + 4 * (i + j));
        const uint32_t drawn = random_bits(seed_, run.first + i + j) >> (32 - terngrad::kDrawnBits);
        const bool take = terngrad::taken(std::fabs(t), drawn, scale);
        const bool below = take && t < 0;
        taken |= uint32_t{take} << j;
        negative |= uint32_t{below} << j;
        if constexpr (kFeedback)
          write(values + 4 * (i + j), t - (below ? -scale : take ? scale : 0));
      }
      write(groups, taken);
      write(groups + 4, negative);
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    const float scale = read<float>(code);
    const std::byte* groups = code + kHeadSize;
    if (!terngrad::valid(scale, groups, padded / kGroup * terngrad::kGroupSize)) return false;
    const float zero = finite(scale) ? 0 : scale;
    for (size_t i = 0; i < padded; i += kGroup, groups += terngrad::kGroupSize) {
      const uint32_t taken = read<uint32_t>(groups);
      const uint32_t negative = read<uint32_t>(groups + 4);
      if ((negative & ~taken) != 0) return false;
      for (size_t j = 0; j < kGroup; ++j)
        put<kAdd>(dst, i + j, negative >> j & 1 ? -scale : taken >> j & 1 ? scale : zero);
    }
    return true;
  }

 private:
  // NaN where a value is not finite.
  template <bool kFeedback>
  float find_scale(const std::byte* src, std::byte* residual, const Run& run) const {
    uint32_t largest = 0;  // absolute values order as their words do, NaNs last
    Sums sums{}, squares{};
    for (size_t i = 0; i < run.padded; ++i) {
      const float t = take<kFeedback>(src, residual, i);
      largest = std::max(largest, word_of(t) & ~kSign);
      sums[i % kSums] += t;
      squares[i % kSums] += t * t;
    }
    if (largest >= kInfinity) return float_of(kNan);
    const float most = float_of(largest);
    return clip_ == 0 ? most : terngrad::clipped(most, clip_, sums, squares, run.n);
  }

  float clip_;
  uint64_t seed_;
};

}  // namespace

extern const Kernel terngrad_scalar;
const Kernel terngrad_scalar = kernel<Terngrad>("scalar", always_usable);

}  // namespace wirepress
