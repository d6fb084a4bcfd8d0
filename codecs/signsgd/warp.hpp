// SPDX-License-Identifier: Apache-2.0
// signsgd on a GPU. Feedback reads the chunk twice rather than to write t between: the second time
// it lies in a cache.
#pragma once

#include "codecs/common/chunked/warps.hpp"
#include "codecs/signsgd/signsgd.hpp"

namespace wirepress::signsgd {

class Warps {
 public:
  static constexpr const char* kName = signsgd::kName;
  explicit Warps(const Args& args) : mean_(args.value[kScale] == kMean) {}
  static constexpr size_t values() { return kValues; }
  static constexpr size_t code_size(size_t n) {
    return chunks::PlaneLayout{kValues, kHeadSize, 1}.code_size(n);
  }

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual,
                            const chunks::WarpRun& run, std::byte* code) const {
    using namespace chunks;
    RowSums<W> sizes(w);
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      const auto t = take_rows<kFeedback>(w, src, residual, i, run.n);
      uint32_t bits[4];
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        sizes.add(w, w.map([](float x) { return float_of(word_of(x) & ~kSign); }, t[k]));
        bits[k] = w.ballot(w.map([](float x) { return x < 0; }, t[k]));
      }
      put_words<1>(w, code + kHeadSize + i / 8, groups_at(i, run.n), bits);
    }
    const float scale = scale_of(mean_, sizes.total(w), run.n);
    if (!finite(scale))
      return put_nan<kFeedback>(w, 1, static_cast<uint32_t>(padded(run.n) / kGroup), run.n, code,
                                residual);
    put_one(w, code, word_of(scale));
    if constexpr (kFeedback) {
      for (uint32_t i = 0; i < run.n; i += kTurn) {
        auto t = take_rows<true>(w, src, residual, i, run.n);
        WPR_UNROLL
        for (unsigned k = 0; k < 4; ++k)
          t[k] = w.map([=](float x) { return x - (x < 0 ? -scale : scale); }, t[k]);
        give_rows<false>(w, residual, i, run.n, t);
      }
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    using namespace chunks;
    const std::byte* bits = code + kHeadSize;
    const float scale = cuda::get<float>(code);
    const uint32_t n_words = static_cast<uint32_t>(padded(n) / kGroup);
    if (word_of(scale) == kNan ? bits_of_words(w, bits, n_words) != 0 : !valid(mean_, scale))
      return false;
    if (!zeros_after(w, bits, n, 1)) return false;
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      const uint32_t groups = groups_at(i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint32_t word = k < groups ? cuda::get<uint32_t>(bits + i / 8 + 4 * k) : 0;
        x[k] = w.map([=](uint32_t lane) { return word >> lane & 1 ? -scale : scale; }, w.lane());
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return true;
  }

 private:
  bool mean_;
};

}  // namespace wirepress::signsgd
