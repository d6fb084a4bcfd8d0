// SPDX-License-Identifier: Apache-2.0
// The reference kernel: spec.md, chunk by chunk.
#include "codecs/onebit/onebit.hpp"

namespace wirepress {
namespace {

using namespace chunks;

class Onebit {
 public:
  static constexpr const char* kName = onebit::kName;
  static constexpr size_t kValues = onebit::kValues;
  static constexpr size_t kHeadSize = onebit::kHeadSize;
  static size_t planes(const Args&) { return 1; }
  static size_t values(const Args& args) { return onebit::values(args); }
  explicit Onebit(const Args&) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const Run& run, std::byte* code) const {
    Sums negative{}, other{};
    size_t n_negative = 0;
    for (size_t i = 0; i < run.padded; i += kGroup) {
      uint32_t word = 0;
      for (size_t j = 0; j < kGroup; ++j) {
        const float t = take<kFeedback>(src, residual, i + j);
        const bool below = t < 0;
        (below ? negative : other)[j % kSums] += t;
        n_negative += below;
        word |= uint32_t{below} << j;
      }
      write(code + kHeadSize + i / 8, word);
    }
    const auto means = onebit::Means::of(negative, n_negative, other, run.n - n_negative);
    if (!means.finite()) {
      write_nan(2, kHeadSize + run.padded / 8, code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    means.write(code);
    if constexpr (!kFeedback) return;
    for (size_t i = 0; i < run.padded; ++i) {
      const float t = read<float>(residual + 4 * i);
      write(residual + 4 * i, t - (t < 0 ? means.negative : means.other));
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    const auto means = onebit::Means::read(code);
    if (!means.valid(code + kHeadSize, padded / 8)) return false;
    for (size_t i = 0; i < padded; i += kGroup) {
      const uint32_t word = read<uint32_t>(code + kHeadSize + i / 8);
      for (size_t j = 0; j < kGroup; ++j)
        put<kAdd>(dst, i + j, word >> j & 1 ? means.negative : means.other);
    }
    return true;
  }
};

}  // namespace

extern const Kernel onebit_scalar;
const Kernel onebit_scalar = kernel<Onebit>("scalar", always_usable);

}  // namespace wirepress
