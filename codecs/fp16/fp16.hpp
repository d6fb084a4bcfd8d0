// SPDX-License-Identifier: Apache-2.0
// What the kernels of fp16 share: parameters, sizes and constants (spec.md).
#pragma once

#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress {
namespace {

struct Fp16Layout {
  enum ParamIndex { kRound = 0, kSaturate = 1 };
  static constexpr const char* kName = "fp16";
  static constexpr uint32_t kLargest = 0x477FE000;   // 65504 as float32
  static constexpr uint32_t kSmallest = 0x38800000;  // 2^-14 as float32: below are denormals
  static constexpr uint32_t kRebias = 112 << 10;     // exponent 127 becomes 15
  static constexpr uint32_t kHalfInfinity = 0x7C00;
  static constexpr uint32_t kHalfNan = 0x7E00;
  static constexpr uint32_t kFloatNan = 0x7FC00000;  // float32's own that becomes kHalfNan
  // A float32 with exponent e below kSmallest is its fraction, with the leading 1, shifted right by
  // kDenormalShift - e.
  static constexpr uint32_t kDenormalShift = 126;

  explicit Fp16Layout(const Args& args)
      : stochastic(args.value[kRound] != 0),
        saturate(args.value[kSaturate] != 0),
        seed(args.seed) {}
  // For the first-level cache, with feedback's buffers; it does not show in the code.
  static size_t values() { return 1024; }
  static size_t code_size(size_t n) { return 2 * n; }

  bool stochastic;
  bool saturate;
  uint64_t seed;
};

}  // namespace
}  // namespace wirepress
