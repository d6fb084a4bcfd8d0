// SPDX-License-Identifier: Apache-2.0
// terngrad on a GPU: the scale in one pass over a chunk, the draws in a second one, for which it
// lies in a cache.
#pragma once

#include "codecs/common/chunked/warps.hpp"
#include "codecs/common/random.hpp"
#include "codecs/terngrad/terngrad.hpp"

namespace wirepress::terngrad {

class Warps {
 public:
  static constexpr const char* kName = terngrad::kName;
  explicit Warps(const Args& args) : clip_(clip_of(args)), seed_(args.seed) {}
  static constexpr size_t values() { return kValues; }
  static constexpr size_t code_size(size_t n) {
    return chunks::PlaneLayout{kValues, kHeadSize, kPlanes}.code_size(n);
  }

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual,
                            const chunks::WarpRun& run, std::byte* code) const {
    using namespace chunks;
    const float scale = find_scale<kFeedback>(w, src, residual, run);
    if (!finite(scale)) return put_nan<kFeedback>(w, 1, words(run.n), run.n, code, residual);
    put_one(w, code, word_of(scale));
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      auto t = take_rows<kFeedback>(w, src, residual, i, run.n);
      uint32_t bits[8];
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t first = run.first + i + 32 * k, seed = seed_;
        const auto take = w.map(
            [=](float x, uint32_t lane) {
              const uint32_t drawn = random_bits(seed, first + lane) >> (32 - kDrawnBits);
              return taken(float_of(word_of(x) & ~kSign), drawn, scale);
            },
            t[k], w.lane());
        bits[2 * k] = w.ballot(take);
        bits[2 * k + 1] = w.ballot(w.map([](bool b, float x) { return b && x < 0; }, take, t[k]));
        if constexpr (kFeedback)
          t[k] = w.map([=](bool b, float x) { return x - (!b      ? 0
                                                          : x < 0 ? -scale
                                                                  : scale); }, take,
                       t[k]);
      }
      put_words<2>(w, code + kHeadSize + i / 4, 2 * groups_at(i, run.n), bits);
      if constexpr (kFeedback) give_rows<false>(w, residual, i, run.n, t);
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    using namespace chunks;
    const std::byte* groups = code + kHeadSize;
    const float scale = cuda::get<float>(code);
    if (word_of(scale) == kNan ? bits_of_words(w, groups, words(n)) != 0
                               : word_of(scale) >= kInfinity)
      return false;
    if (!zeros_after(w, groups, n, kPlanes)) return false;
    const float zero = finite(scale) ? 0 : scale;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      const uint32_t n_groups = groups_at(i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const std::byte* at = groups + i / 4 + 8 * k;
        const uint32_t take = k < n_groups ? cuda::get<uint32_t>(at) : 0;
        const uint32_t negative = k < n_groups ? cuda::get<uint32_t>(at + 4) : 0;
        bad |= negative & ~take;
        x[k] = w.map(
            [=](uint32_t lane) {
              return negative >> lane & 1 ? -scale : take >> lane & 1 ? scale : zero;
            },
            w.lane());
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return bad == 0;
  }

 private:
  static constexpr uint32_t words(uint32_t n) {
    return static_cast<uint32_t>(chunks::padded(n) / chunks::kGroup * kPlanes);
  }

  // NaN where a value is not finite.
  template <bool kFeedback, class W>
  WPR_ON_DEVICE float find_scale(W& w, const std::byte* src, const std::byte* residual,
                                 const chunks::WarpRun& run) const {
    using namespace chunks;
    auto largest = w.all(uint32_t{0});  // absolute values order as their words do, NaNs last
    RowSums<W> sums(w), squares(w);
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      const auto t = take_rows<kFeedback>(w, src, residual, i, run.n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        largest = w.map(
            [](uint32_t a, float x) {
              const uint32_t size = word_of(x) & ~kSign;
              return a > size ? a : size;
            },
            largest, t[k]);
        if (clip_ == 0) continue;
        sums.add(w, t[k]);
        squares.add(w, w.map([](float x) { return x * x; }, t[k]));
      }
    }
    const uint32_t most = w.most(largest);
    if (most >= kInfinity) return float_of(kNan);
    if (clip_ == 0) return float_of(most);
    return clipped(float_of(most), clip_, sums.total(w), squares.total(w), run.n);
  }

  float clip_;
  uint64_t seed_;
};

}  // namespace wirepress::terngrad
