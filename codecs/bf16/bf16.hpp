// SPDX-License-Identifier: Apache-2.0
// What the kernels of bf16 share: parameters, sizes and constants (spec.md).
#pragma once

#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress {
namespace {

struct Bf16Layout {
  enum ParamIndex { kRound = 0, kSaturate = 1 };
  static constexpr const char* kName = "bf16";
  static constexpr uint32_t kNan = 0x7FC00000;      // any NaN's code, in the upper half
  static constexpr uint32_t kLargest = 0x7F7F0000;  // of the finite values

  explicit Bf16Layout(const Args& args)
      : stochastic(args.value[kRound] != 0),
        saturate(args.value[kSaturate] != 0),
        seed(args.seed) {}
  // For the first-level cache, with feedback's buffers; it does not show in the code.
  static constexpr size_t values() { return 1024; }
  static constexpr size_t code_size(size_t n) { return 2 * n; }

  // Of a float32's bits; index: what a draw depends on.
  template <bool kStochastic, bool kSaturate>
  constexpr uint16_t code(uint32_t word, uint64_t index) const {
    const uint32_t sign = word & kFloatSign;
    uint32_t size = word & ~kFloatSign;
    if (size > kFloatInfinity) return kNan >> 16;
    if (kSaturate && size < kFloatInfinity) size = std::min(size, kLargest);
    // Adding to the word carries from fraction to exponent, up to infinity and not beyond.
    const uint32_t up = kStochastic ? random_bits(seed, index) >> 16 : 0x7FFF + (size >> 16 & 1);
    return static_cast<uint16_t>((sign | (size + up)) >> 16);
  }
  constexpr uint16_t code(uint32_t word, uint64_t index) const {
    if (stochastic)
      return saturate ? code<true, true>(word, index) : code<true, false>(word, index);
    return saturate ? code<false, true>(word, index) : code<false, false>(word, index);
  }

  static constexpr uint32_t value(uint16_t code) { return uint32_t{code} << 16; }

  // Calls function.operator()<stochastic, saturate>(), so that no loop asks for them.
  template <typename Function>
  void with_settings(Function function) const {
    if (stochastic)
      return saturate ? function.template operator()<true, true>()
                      : function.template operator()<true, false>();
    return saturate ? function.template operator()<false, true>()
                    : function.template operator()<false, false>();
  }

  bool stochastic;
  bool saturate;
  uint64_t seed;
};

}  // namespace
}  // namespace wirepress
