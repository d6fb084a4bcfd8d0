// SPDX-License-Identifier: Apache-2.0
// The reference kernel: spec.md, chunk by chunk.
#include <cmath>

#include "codecs/qsgd/qsgd.hpp"

namespace wirepress {
namespace {

using namespace chunks;

class Qsgd {
 public:
  static constexpr const char* kName = qsgd::kName;
  static constexpr size_t kValues = qsgd::kValues;
  static constexpr size_t kHeadSize = qsgd::kHeadSize;
  static size_t planes(const Args& args) { return qsgd::Levels(args).bits; }
  explicit Qsgd(const Args& args) : levels_(args), seed_(args.seed) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const Run& run, std::byte* code) const {
    uint32_t largest = 0;  // absolute values order as their words do, NaNs last
    for (size_t i = 0; i < run.padded; ++i)
      largest = std::max(largest, word_of(take<kFeedback>(src, residual, i)) & ~kSign);
    const float unit = levels_.unit(largest);
    std::byte* groups = code + kHeadSize;
    if (!finite(unit)) {
      write_nan(1, kHeadSize + run.padded / kGroup * levels_.group_size(), code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    write(code, unit);
    const float inverse = qsgd::Levels::inverse(unit);
    for (size_t i = 0; i < run.padded; i += kGroup, groups += levels_.group_size()) {
      std::array<uint32_t, qsgd::kMostBits> plane{};
      for (size_t j = 0; j < kGroup; ++j) {
        const float t = read<float>((kFeedback ? residual : src) + 4 * (i + j));
        const uint32_t level = levels_.round(std::fabs(t) * inverse, seed_, run.first + i + j);
        const bool negative = t < 0 && level > 0;
        for (size_t p = 0; p + 1 < levels_.bits; ++p) plane[p] |= (level >> p & 1) << j;
        plane[levels_.bits - 1] |= uint32_t{negative} << j;
        if constexpr (kFeedback) {
          const float size = static_cast<float>(level) * unit;
          write(residual + 4 * (i + j), t - (negative ? -size : size));
        }
      }
      std::memcpy(groups, plane.data(), levels_.group_size());
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    const float unit = read<float>(code);
    const std::byte* groups = code + kHeadSize;
    if (!levels_.valid(unit, groups, padded / kGroup * levels_.group_size())) return false;
    for (size_t i = 0; i < padded; i += kGroup, groups += levels_.group_size()) {
      for (size_t j = 0; j < kGroup; ++j) {
        uint32_t level = 0;
        for (size_t p = 0; p + 1 < levels_.bits; ++p) level |= bit(groups, p, j) << p;
        const bool negative = bit(groups, levels_.bits - 1, j) != 0;
        if (negative && level == 0) return false;
        const float size = static_cast<float>(level) * unit;
        put<kAdd>(dst, i + j, negative ? -size : size);
      }
    }
    return true;
  }

 private:
  static uint32_t bit(const std::byte* groups, size_t plane, size_t j) {
    return read<uint32_t>(groups + 4 * plane) >> j & 1;
  }

  qsgd::Levels levels_;
  uint64_t seed_;
};

}  // namespace

extern const Kernel qsgd_scalar;
const Kernel qsgd_scalar = kernel<Qsgd>("scalar", always_usable);

}  // namespace wirepress
