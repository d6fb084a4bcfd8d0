// SPDX-License-Identifier: Apache-2.0
// qsgd on a GPU: the unit in one pass over a chunk, the draws in a second one, for which it lies in
// a cache. The words of a turn's four groups are at most 32: each is kept by one lane.
#pragma once

#include "codecs/common/chunked/warps.hpp"
#include "codecs/qsgd/qsgd.hpp"

namespace wirepress::qsgd {

class Warps {
 public:
  static constexpr const char* kName = qsgd::kName;
  explicit Warps(const Args& args) : levels_(args), seed_(args.seed) {}
  static constexpr size_t values() { return kValues; }
  constexpr size_t code_size(size_t n) const {
    return chunks::PlaneLayout{kValues, kHeadSize, levels_.bits}.code_size(n);
  }

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual,
                            const chunks::WarpRun& run, std::byte* code) const {
    using namespace chunks;
    const Levels levels = levels_;
    const float unit = levels.unit(largest<kFeedback>(w, src, residual, run.n));
    if (!finite(unit)) return put_nan<kFeedback>(w, 1, words(run.n), run.n, code, residual);
    put_one(w, code, word_of(unit));
    const float inverse = Levels::inverse(unit);
    const uint32_t bits = static_cast<uint32_t>(levels.bits);
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      auto t = take_rows<kFeedback>(w, src, residual, i, run.n);
      auto planes = w.all(uint32_t{0});
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t first = run.first + i + 32 * k, seed = seed_;
        const auto level = w.map(
            [=](float x, uint32_t lane) {
              return levels.round(float_of(word_of(x) & ~kSign) * inverse, seed, first + lane);
            },
            t[k], w.lane());
        const auto negative =
            w.map([](float x, uint32_t own) { return x < 0 && own > 0; }, t[k], level);
        for (uint32_t p = 0; p < bits; ++p) {
          const uint32_t word =
              p + 1 < bits
                  ? w.ballot(w.map([=](uint32_t own) { return (own >> p & 1) != 0; }, level))
                  : w.ballot(negative);
          const uint32_t keeper = k * bits + p;
          planes = w.map([=](uint32_t own, uint32_t lane) { return lane == keeper ? word : own; },
                         planes, w.lane());
        }
        if constexpr (kFeedback)
          t[k] = w.map(
              [=](float x, uint32_t own, bool below) {
                const float size = static_cast<float>(own) * unit;
                return x - (below ? -size : size);
              },
              t[k], level, negative);
      }
      std::byte* const to = code + kHeadSize + i / kGroup * levels.group_size();
      const uint32_t n_words = bits * groups_at(i, run.n);
      w.each(
          [=](uint32_t lane, uint32_t own) {
            if (lane < n_words) cuda::put(to + 4 * lane, own);
          },
          w.lane(), planes);
      if constexpr (kFeedback) give_rows<false>(w, residual, i, run.n, t);
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    using namespace chunks;
    const std::byte* groups = code + kHeadSize;
    const float unit = cuda::get<float>(code);
    const bool empty =
        Levels::empty(unit);  // every value is the unit: which NaN 0 * NaN is, varies
    if (empty ? bits_of_words(w, groups, words(n)) != 0 : !levels_.valid(unit)) return false;
    const uint32_t bits = static_cast<uint32_t>(levels_.bits);
    if (!zeros_after(w, groups, n, bits)) return false;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      const uint32_t n_groups = groups_at(i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const std::byte* at = groups + (i / kGroup + k) * levels_.group_size();
        auto level = w.all(uint32_t{0});
        uint32_t any = 0, negative = 0;
        for (uint32_t p = 0; k < n_groups && p < bits; ++p) {
          const uint32_t word = cuda::get<uint32_t>(at + 4 * p);
          if (p + 1 == bits) {
            negative = word;
            break;
          }
          any |= word;
          level = w.map([=](uint32_t own, uint32_t lane) { return own | (word >> lane & 1) << p; },
                        level, w.lane());
        }
        bad |= negative & ~any;
        x[k] = w.map(
            [=](uint32_t own, uint32_t lane) {
              const float size = empty ? unit : static_cast<float>(own) * unit;
              return negative >> lane & 1 ? -size : size;
            },
            level, w.lane());
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return bad == 0;
  }

 private:
  constexpr uint32_t words(uint32_t n) const {
    return static_cast<uint32_t>(chunks::padded(n) / chunks::kGroup * levels_.bits);
  }

  // Absolute values order as their words do, NaNs last.
  template <bool kFeedback, class W>
  static WPR_ON_DEVICE uint32_t largest(W& w, const std::byte* src, const std::byte* residual,
                                        uint32_t n) {
    auto most = w.all(uint32_t{0});
    for (uint32_t i = 0; i < n; i += chunks::kTurn) {
      const auto t = chunks::take_rows<kFeedback>(w, src, residual, i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        most = w.map(
            [](uint32_t a, float x) {
              const uint32_t size = chunks::word_of(x) & ~chunks::kSign;
              return a > size ? a : size;
            },
            most, t[k]);
    }
    return w.most(most);
  }

  Levels levels_;
  uint64_t seed_;
};

}  // namespace wirepress::qsgd
