// SPDX-License-Identifier: Apache-2.0
// fp8 on a GPU. A chunk's code is an odd number of bytes, so lanes store single ones, 32 neighbours
// at a time.
#pragma once

#include "codecs/common/chunked/cast_warps.hpp"
#include "codecs/fp8/fp8.hpp"

namespace wirepress {
namespace {

class Fp8Warps : public Fp8Layout {
 public:
  using Fp8Layout::Fp8Layout;

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual,
                            const chunks::WarpRun& run, std::byte* code) const {
    if (e5m2)
      encode_as<E5M2, kFeedback>(w, src, residual, run.n, code);
    else
      encode_as<E4M3, kFeedback>(w, src, residual, run.n, code);
  }
  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    return e5m2 ? decode_as<E5M2, kAdd>(w, code, n, dst) : decode_as<E4M3, kAdd>(w, code, n, dst);
  }

 private:
  template <typename Kind, bool kFeedback, class W>
  static WPR_ON_DEVICE void encode_as(W& w, const std::byte* src, std::byte* residual, uint32_t n,
                                      std::byte* out) {
    using namespace chunks;
    auto sizes = w.all(uint32_t{0});
    for (uint32_t i = 0; i < n; i += kTurn) {
      const auto t = take_rows<kFeedback>(w, src, residual, i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        sizes = w.map(
            [](uint32_t a, float x) {
              const uint32_t size = word_of(x) & ~kSign;
              return a > size ? a : size;
            },
            sizes, t[k]);
    }
    const uint32_t largest = w.most(sizes);
    const bool is_finite = largest < chunks::kInfinity;
    const int scale = scale_of<Kind>(largest);
    w.each(
        [=](uint32_t lane) {
          if (lane == 0)
            out[0] = static_cast<std::byte>(is_finite ? scale + kScaleBias : kNanScale);
        },
        w.lane());
    const float inverse = power_of_2(-scale);
    for (uint32_t i = 0; i < n; i += kTurn) {
      auto t = take_rows<kFeedback>(w, src, residual, i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const auto codes = w.map(
            [=](float x) { return is_finite ? Fp8Layout::code<Kind>(x * inverse) : 0; }, t[k]);
        const uint32_t first = i + cuda::kLanes * k;
        w.each(
            [=](uint32_t lane, int code) {
              if (first + lane < n) out[1 + first + lane] = static_cast<std::byte>(code);
            },
            w.lane(), codes);
        if constexpr (kFeedback)
          t[k] = w.map(
              [=](float x, int code) {
                return float_of(lost_bits(
                    x, is_finite ? word_of(Fp8Layout::value<Kind>(code, scale)) : Fp8Layout::kNan));
              },
              t[k], codes);
      }
      if constexpr (kFeedback) give_rows<false>(w, residual, i, n, t);
    }
  }

  template <typename Kind, bool kAdd, class W>
  static WPR_ON_DEVICE bool decode_as(W& w, const std::byte* in, uint32_t n, std::byte* dst) {
    using namespace chunks;
    const int byte = static_cast<int>(in[0]), scale = byte - kScaleBias;
    const bool is_nan = byte == kNanScale;
    if (!is_nan && !scale_is_valid<Kind>(scale)) return false;
    auto bad = w.all(uint32_t{0});
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint32_t first = i + cuda::kLanes * k;
        const auto codes = w.map(
            [=](uint32_t lane) {
              return first + lane < n ? static_cast<int>(in[1 + first + lane]) : 0;
            },
            w.lane());
        bad =
            w.map([=](uint32_t all,
                      int code) { return all | (is_nan ? code != 0 : (code & 0x7F) > Kind::kTop); },
                  bad, codes);
        x[k] = w.map(
            [=](int code) {
              return is_nan ? float_of(Fp8Layout::kNan) : Fp8Layout::value<Kind>(code, scale);
            },
            codes);
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return w.either(bad) == 0;
  }
};

}  // namespace
}  // namespace wirepress
