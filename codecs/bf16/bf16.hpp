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
  static size_t values() { return 1024; }
  static size_t code_size(size_t n) { return 2 * n; }

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
