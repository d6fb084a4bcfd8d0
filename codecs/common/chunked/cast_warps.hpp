// SPDX-License-Identifier: Apache-2.0
// Codes of 16 bits for each float32, on a GPU. A lane has four neighbours: it loads 16 bytes and
// stores 8, or the other way. Format, a class of constants and settings, has
//
//   static constexpr const char* kName;
//   explicit Format(const Args&);
//   static size_t values(), code_size(size_t n);
//   uint16_t code(uint32_t word, uint64_t index) const;     // of a float32's bits
//   static uint32_t value(uint16_t code);
#pragma once

#include "codecs/common/chunked/float_chunks.hpp"
#include "codecs/common/chunked/warps.hpp"

namespace wirepress::chunks {

// What a code of t has lost; 0 where that is not finite.
static constexpr uint32_t lost_bits(float t, uint32_t decoded) {
  const float error = t - float_of(decoded);
  return finite(error) ? word_of(error) : 0;
}

// Quads i to i + 127 of n, of what is encoded.
template <bool kFeedback, class W>
WPR_ON_DEVICE auto take_quads(W& w, const std::byte* src, const std::byte* residual, uint32_t i,
                              uint32_t n) {
  auto t = w.quads(src + 4 * i, n - i);
  if constexpr (kFeedback) {
    const auto rest = w.quads(residual + 4 * i, n - i);
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      t[k] = w.map([](uint32_t a, uint32_t b) { return word_of(float_of(a) + float_of(b)); }, t[k],
                   rest[k]);
  }
  return t;
}

template <bool kAdd, class W, class Words>
WPR_ON_DEVICE void give_quads(W& w, std::byte* dst, uint32_t i, uint32_t n, Words& x) {
  if constexpr (kAdd) {
    const auto before = w.quads(dst + 4 * i, n - i);
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      x[k] = w.map([](uint32_t a, uint32_t b) { return word_of(float_of(a) + float_of(b)); },
                   before[k], x[k]);
  }
  w.put_quads(dst + 4 * i, n - i, x);
}

template <class Format>
class CastWarps : public Format {
 public:
  using Format::Format;

  template <bool kFeedback, class W>
  WPR_ON_DEVICE void encode(W& w, const std::byte* src, std::byte* residual, const WarpRun& run,
                            std::byte* code) const {
    for (uint32_t i = 0; i < run.n; i += kTurn) {
      auto t = take_quads<kFeedback>(w, src, residual, i, run.n);
      auto codes = w.all(uint64_t{0});
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t first = run.first + i + k;
        const auto own = w.map(
            [=, this](uint32_t word, uint32_t lane) { return this->code(word, first + 4 * lane); },
            t[k], w.lane());
        codes = w.map([=](uint64_t all, uint16_t one) { return all | uint64_t{one} << 16 * k; },
                      codes, own);
        if constexpr (kFeedback)
          t[k] = w.map([](uint32_t word,
                          uint16_t one) { return lost_bits(float_of(word), Format::value(one)); },
                       t[k], own);
      }
      put_codes(w, code + 2 * i, run.n - i, codes);
      if constexpr (kFeedback) w.put_quads(residual + 4 * i, run.n - i, t);
    }
  }

  template <bool kAdd, class W>
  WPR_ON_DEVICE bool decode(W& w, const std::byte* code, uint32_t n, std::byte* dst) const {
    for (uint32_t i = 0; i < n; i += kTurn) {
      const auto codes = get_codes(w, code + 2 * i, n - i);
      typename W::template Four<uint32_t> x;
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        x[k] =
            w.map([=](uint64_t all) { return Format::value(static_cast<uint16_t>(all >> 16 * k)); },
                  codes);
      give_quads<kAdd>(w, dst, i, n, x);
    }
    return true;
  }

 private:
  template <class W, class Codes>
  static WPR_ON_DEVICE void put_codes(W& w, std::byte* to, uint32_t n, const Codes& codes) {
    if (n >= kTurn) {
      w.each([=](uint32_t lane, uint64_t own) { cuda::put(to + 8 * lane, own); }, w.lane(), codes);
      return;
    }
    w.each(
        [=](uint32_t lane, uint64_t own) {
          for (unsigned k = 0; k < 4 && 4 * lane + k < n; ++k)
            cuda::put(to + 8 * lane + 2 * k, static_cast<uint16_t>(own >> 16 * k));
        },
        w.lane(), codes);
  }
  template <class W>
  static WPR_ON_DEVICE auto get_codes(W& w, const std::byte* from, uint32_t n) {
    return w.map(
        [=](uint32_t lane) {
          if (n >= kTurn) return cuda::get<uint64_t>(from + 8 * lane);
          uint64_t own = 0;
          for (unsigned k = 0; k < 4 && 4 * lane + k < n; ++k)
            own |= uint64_t{cuda::get<uint16_t>(from + 8 * lane + 2 * k)} << 16 * k;
          return own;
        },
        w.lane());
  }
};

}  // namespace wirepress::chunks
