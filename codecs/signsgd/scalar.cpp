// SPDX-License-Identifier: Apache-2.0
// The reference kernel: spec.md, chunk by chunk.
#include <cmath>

#include "codecs/signsgd/signsgd.hpp"

namespace wirepress {
namespace {

using namespace chunks;

class Signsgd {
 public:
  static constexpr const char* kName = signsgd::kName;
  static constexpr size_t kValues = signsgd::kValues;
  static constexpr size_t kHeadSize = signsgd::kHeadSize;
  static size_t planes(const Args&) { return 1; }
  explicit Signsgd(const Args& args) : mean_(args.value[signsgd::kScale] == signsgd::kMean) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const Run& run, std::byte* code) const {
    Sums sums{};
    for (size_t i = 0; i < run.padded; i += kGroup) {
      uint32_t word = 0;
      for (size_t j = 0; j < kGroup; ++j) {
        const float t = take<kFeedback>(src, residual, i + j);
        sums[j % kSums] += std::fabs(t);
        word |= uint32_t{t < 0} << j;
      }
      write(code + kHeadSize + i / 8, word);
    }
    const float scale = signsgd::scale_of(mean_, sums, run.n);
    if (!finite(scale)) {
      write_nan(1, kHeadSize + run.padded / 8, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    write(code, scale);
    if constexpr (!kFeedback) return;
    for (size_t i = 0; i < run.padded; ++i) {
      const float t = read<float>(residual + 4 * i);
      write(residual + 4 * i, t - (t < 0 ? -scale : scale));
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    const float scale = read<float>(code);
    if (!signsgd::valid(mean_, scale, code + kHeadSize, padded / 8)) return false;
    for (size_t i = 0; i < padded; i += kGroup) {
      const uint32_t word = read<uint32_t>(code + kHeadSize + i / 8);
      for (size_t j = 0; j < kGroup; ++j) put<kAdd>(dst, i + j, word >> j & 1 ? -scale : scale);
    }
    return true;
  }

 private:
  bool mean_;
};

}  // namespace

extern const Kernel signsgd_scalar;
const Kernel signsgd_scalar = kernel<Signsgd>("scalar", always_usable);

}  // namespace wirepress
