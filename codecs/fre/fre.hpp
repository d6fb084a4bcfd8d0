// SPDX-License-Identifier: Apache-2.0
// The quantiser of fre: which float32 stands for which. Everything else in the format is lossless.
#pragma once

#include "base/kernel.hpp"

namespace wirepress::fre {

enum ParamIndex { kM = 0, kRound = 1, kFlush = 2, kWays = 3 };
constexpr size_t kChunks = 0;          // of kWays: a stream for every kChunkValues values
constexpr size_t kChunkValues = 1024;  // whose code takes less than 64 KiB
enum Round { kNearest = 0, kTruncate = 1, kMidpoint = 2 };

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7F800000;  // also: the exponent field
constexpr uint32_t kFraction = 0x007FFFFF;
constexpr int kFractionBits = 23;
constexpr int kFractionBits16 = 7;  // of bfloat16

constexpr uint32_t exponent(uint32_t word) { return (word >> kFractionBits) & 0xFF; }

// Words of bfloat16 are those of float32 with 16 low bits 0.
constexpr bool is_short(const Args& args) { return args.dtype == DType::kBfloat16; }

// What the decoder adds to values that lost fraction bits: half of the last bit that is kept.
constexpr uint32_t half_unit(const Args& args) {
  const int most = is_short(args) ? kFractionBits16 : kFractionBits;
  const int m = args.value[kM];
  return args.value[kRound] == kMidpoint && m < most ? 1u << (kFractionBits - m - 1) : 0;
}

struct Quantiser {
  explicit Quantiser(const Args& args)
      : Quantiser(args.value[kM], args.value[kRound] == kNearest, args.value[kFlush] != 0) {}
  Quantiser(int m, bool to_nearest, bool to_zero)
      : drop((1u << (kFractionBits - m)) - 1),
        bias(to_nearest ? drop >> 1 : 0),
        tie_shift(static_cast<uint32_t>(kFractionBits - m)),
        tie_mask(to_nearest && m < kFractionBits ? 1 : 0),
        zero_keep(to_zero ? 0 : ~0u) {}

  constexpr uint32_t operator()(uint32_t word) const {
    const uint32_t sign = word & kSign;
    const uint32_t size = word & ~kSign;  // rounded without its sign, so that NaNs cannot wrap
    const uint32_t cut = size & ~drop;
    // Half a unit less one, and one more when the kept part is odd: ties go to even.
    uint32_t kept = (size + bias + ((size >> tie_shift) & tie_mask)) & ~drop;
    if (kept >= kInfinity) kept = cut;  // the largest values would become infinite; NaNs too
    if (size > kInfinity && kept == kInfinity) kept |= 1u << 22;  // a NaN stays one
    return size <= kFraction ? word & zero_keep : sign | kept;
  }

  uint32_t drop;  // the fraction bits that go
  uint32_t bias;
  uint32_t tie_shift;
  uint32_t tie_mask;
  uint32_t zero_keep;  // 0 where words with exponent 0 become +0
};

}  // namespace wirepress::fre
