// SPDX-License-Identifier: Apache-2.0
// Blocks of float32 values as a scale and small integers (float_blocks.hpp), on a GPU. Layout is
// the codec's BlockLayout. A lane has four neighbours: 16 bytes of values, 4 or 2 of codes.
#pragma once

#include "codecs/common/chunked/cast_warps.hpp"
#include "codecs/common/chunked/float_blocks.hpp"

namespace wirepress::chunks {

template <class Layout>
class BlockWarps : public Layout {
 public:
  using Layout::Layout;
  static constexpr int kBits = Layout::kBits;
  static constexpr uint32_t kCode = (1u << kBits) - 1;

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual, const WarpRun& run,
                            std::byte* code) const {
    auto largest = w.all(uint32_t{0});
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      const auto t = take_quads<kFeedback>(w, src, residual, i, run.n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        largest = w.map(
            [](uint32_t a, uint32_t word) {
              const uint32_t size = word & ~kSign;
              return a > size ? a : size;
            },
            largest, t[k]);
    }
    const uint32_t scale = Layout::scale_of(w.most(largest));
    put_one(w, code, scale);
    const float unit = float_of(scale), inverse = 1.0f / unit;
    const bool zero = Layout::codes_are_zero(scale);
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      auto t = take_quads<kFeedback>(w, src, residual, i, run.n);
      auto codes = w.all(uint32_t{0});
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t first = run.first + i + k;
        const auto own = w.map(
            [=, this](uint32_t word, uint32_t lane) {
              return zero ? 0 : this->code(float_of(word), inverse, first + 4 * lane);
            },
            t[k], w.lane());
        codes =
            w.map([=](uint32_t all,
                      int one) { return all | (static_cast<uint32_t>(one) & kCode) << kBits * k; },
                  codes, own);
        if constexpr (kFeedback)
          t[k] = w.map(
              [=](uint32_t word, int one) {
                return lost_bits(float_of(word),
                                 zero ? scale : word_of(static_cast<float>(one) * unit));
              },
              t[k], own);
      }
      put_codes(w, code + Layout::kHeadSize + i * kBits / 8, run.n - i, codes);
      if constexpr (kFeedback) w.put_quads(residual + 4 * i, run.n - i, t);
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    const uint32_t scale = cuda::get<uint32_t>(code);
    const bool zero = Layout::codes_are_zero(scale);
    if (!Layout::scale_is_valid(scale)) return false;
    const float unit = float_of(scale);
    auto bad = w.all(uint32_t{0});
    for (uint32_t i = 0; i < n; i += kTurn) {
      const auto codes = get_codes(w, code + Layout::kHeadSize + i * kBits / 8, n - i);
      typename W::template Four<uint32_t> x;
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const auto own =
            w.map([=](uint32_t all) { return code_of(all >> kBits * k & kCode); }, codes);
        const uint32_t left = n - i;
        bad = w.map(
            [=](uint32_t all, int one, uint32_t lane) {
              const bool none = 4 * lane + k >= left;  // in the last byte of an odd number
              return all | (one == Layout::kNoCode || ((zero || none) && one != 0));
            },
            bad, own, w.lane());
        x[k] = w.map(
            [=](int one) { return zero ? scale : word_of(static_cast<float>(one) * unit); }, own);
      }
      give_quads<kAdd>(w, dst, i, n, x);
    }
    return w.either(bad) == 0;
  }

 private:
  using Codes = std::conditional_t<kBits == 8, uint32_t, uint16_t>;  // of a lane

  static constexpr int code_of(uint32_t bits) {
    return static_cast<int>(bits << (32 - kBits)) >> (32 - kBits);
  }

  template <class W, class Lanes>
  static WPR_ON_DEVICE void put_codes(W& w, std::byte* to, uint32_t n, const Lanes& codes) {
    w.each(
        [=](uint32_t lane, uint32_t own) {
          std::byte* const at = to + sizeof(Codes) * lane;
          if (n >= 4 * lane + 4) return cuda::put(at, static_cast<Codes>(own));
          for (unsigned k = 0; k < sizeof(Codes) && 4 * lane + k * 8 / kBits < n; ++k)
            at[k] = static_cast<std::byte>(own >> 8 * k);
        },
        w.lane(), codes);
  }
  template <class W>
  static WPR_ON_DEVICE auto get_codes(W& w, const std::byte* from, uint32_t n) {
    return w.map(
        [=](uint32_t lane) {
          const std::byte* own = from + sizeof(Codes) * lane;
          if (n >= 4 * lane + 4) return uint32_t{cuda::get<Codes>(own)};
          uint32_t codes = 0;
          for (unsigned k = 0; k < sizeof(Codes) && 4 * lane + k * 8 / kBits < n; ++k)
            codes |= static_cast<uint32_t>(own[k]) << 8 * k;
          return codes;
        },
        w.lane());
  }
};

}  // namespace wirepress::chunks
