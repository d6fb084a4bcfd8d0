// SPDX-License-Identifier: Apache-2.0
// The quantiser of fre: which float32 stands for which. Everything else in the format is lossless.
#pragma once

#include "base/kernel.hpp"

namespace wirepress::fre {

enum ParamIndex { kM = 0, kRound = 1, kFlush = 2, kWays = 3 };
enum Round { kNearest = 0, kTruncate = 1 };

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7F800000;  // also: the exponent field
constexpr uint32_t kFraction = 0x007FFFFF;
constexpr int kFractionBits = 23;

constexpr uint32_t exponent(uint32_t word) { return (word >> kFractionBits) & 0xFF; }

class Quantiser {
 public:
  explicit Quantiser(const Args& args)
      : Quantiser(args.value[kM], args.value[kRound] == kNearest, args.value[kFlush] != 0) {}
  Quantiser(int m, bool nearest, bool flush)
      : drop_((1u << (kFractionBits - m)) - 1),
        bias_(nearest ? drop_ >> 1 : 0),
        tie_shift_(static_cast<uint32_t>(kFractionBits - m)),
        tie_mask_(nearest && m < kFractionBits ? 1 : 0),
        zero_keep_(flush ? 0 : ~0u) {}

  uint32_t operator()(uint32_t word) const {
    const uint32_t sign = word & kSign;
    const uint32_t size = word & ~kSign;  // rounded without its sign, so that NaNs cannot wrap
    const uint32_t cut = size & ~drop_;
    // Half a unit less one, and one more when the kept part is odd: ties go to even.
    uint32_t kept = (size + bias_ + ((size >> tie_shift_) & tie_mask_)) & ~drop_;
    if (kept >= kInfinity) kept = cut;  // the largest values would become infinite; NaNs too
    if (size > kInfinity && kept == kInfinity) kept |= 1u << 22;  // a NaN stays one
    return size <= kFraction ? word & zero_keep_ : sign | kept;
  }

 private:
  uint32_t drop_;  // the fraction bits that go
  uint32_t bias_;
  uint32_t tie_shift_;
  uint32_t tie_mask_;
  uint32_t zero_keep_;  // 0 where words with exponent 0 become +0
};

}  // namespace wirepress::fre
