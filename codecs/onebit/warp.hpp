// SPDX-License-Identifier: Apache-2.0
// onebit on a GPU. Feedback reads the chunk twice rather than to write t between: the second time
// it lies in a cache.
#pragma once

#include "codecs/common/chunked/warps.hpp"
#include "codecs/onebit/onebit.hpp"

namespace wirepress::onebit {

class Warps {
 public:
  static constexpr const char* kName = onebit::kName;
  explicit Warps(const Args& args) : values_(onebit::values(args)) {}
  constexpr size_t values() const { return values_; }
  constexpr size_t code_size(size_t n) const {
    return chunks::PlaneLayout{values_, kHeadSize, 1}.code_size(n);
  }

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual,
                            const chunks::WarpRun& run, std::byte* code) const {
    using namespace chunks;
    RowSums<W> negative(w), other(w);
    uint32_t n_negative = 0;
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      const auto t = take_rows<kFeedback>(w, src, residual, i, run.n);
      uint32_t bits[4];
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const auto below = w.map([](float x) { return x < 0; }, t[k]);
        negative.add(w, w.map([](bool b, float x) { return b ? x : 0.0f; }, below, t[k]));
        other.add(w, w.map([](bool b, float x) { return b ? 0.0f : x; }, below, t[k]));
        bits[k] = w.ballot(below);
        n_negative += static_cast<uint32_t>(std::popcount(bits[k]));
      }
      put_words<1>(w, code + kHeadSize + i / 8, groups_at(i, run.n), bits);
    }
    const Means means =
        Means::of(negative.total(w), n_negative, other.total(w), run.n - n_negative);
    if (!means.finite())
      return put_nan<kFeedback>(w, 2, static_cast<uint32_t>(padded(run.n) / kGroup), run.n, code,
                                residual);
    put_one(w, code, word_of(means.negative));
    put_one(w, code + 4, word_of(means.other));
    if constexpr (kFeedback) {
      for (uint32_t i = 0; i < run.n; i += kTurn) {
        auto t = take_rows<true>(w, src, residual, i, run.n);
        WPR_UNROLL
        for (unsigned k = 0; k < 4; ++k)
          t[k] = w.map([=](float x) { return x - (x < 0 ? means.negative : means.other); }, t[k]);
        give_rows<false>(w, residual, i, run.n, t);
      }
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    using namespace chunks;
    const std::byte* bits = code + kHeadSize;
    const Means means{cuda::get<float>(code), cuda::get<float>(code + 4)};
    const uint32_t n_words = static_cast<uint32_t>(padded(n) / kGroup);
    if (!(means.is_nan() ? bits_of_words(w, bits, n_words) == 0 : means.valid())) return false;
    if (!zeros_after(w, bits, n, 1)) return false;
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      const uint32_t groups = groups_at(i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint32_t word = k < groups ? cuda::get<uint32_t>(bits + i / 8 + 4 * k) : 0;
        x[k] = w.map([=](uint32_t lane) { return word >> lane & 1 ? means.negative : means.other; },
                     w.lane());
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return true;
  }

 private:
  size_t values_;
};

}  // namespace wirepress::onebit
