// SPDX-License-Identifier: Apache-2.0
// fre: float32 or bfloat16 with m mantissa bits and exponent differences (spec.md).
#include "codecs/fre/fre.hpp"

#include <algorithm>

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "truncate", "midpoint"};

constexpr Param kParams[] = {
    {"m", 1, 23, 5, nullptr, "mantissa bits kept; the relative error is at most 2^-(m+1), or 2^-m",
     false, false, Bounds::kFractionBits},
    {"round", 0, 2, fre::kNearest, kRoundWords,
     "how the mantissa is cut; midpoint: as truncate, decoded half a unit higher"},
    {"flush", 0, 1, 0, nullptr, "1: denormals and -0 become +0"},
    {"ways", 0, 4, 1, nullptr,
     "bit streams a block: 1, 4, or 0: one for every 1024 values, which GPUs expand side by side"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat64 || args->dtype == DType::kFloat16)
    return fail(Code::kParameter, "fre: takes float32 and bfloat16, not %s; bx does",
                dtype_name(args->dtype));
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBfloat16 &&
      args->dtype != DType::kBytes)
    return fail(Code::kParameter,
                "fre: takes float32, bfloat16 or bytes (that are float32), not %s",
                dtype_name(args->dtype));
  if (fre::is_short(*args) && args->value[fre::kM] > fre::kFractionBits16)
    return fail(Code::kParameter, "fre: bfloat16 has %d mantissa bits, m is %d",
                fre::kFractionBits16, args->value[fre::kM]);
  const int ways = args->value[fre::kWays];
  if (ways != fre::kChunks && ways != 1 && ways != 4)
    return fail(Code::kParameter, "fre: ways must be 0, 1 or 4, not %d", ways);
  return {};
}

bool lossless_with(const Args& args) {
  const int digits = fre::is_short(args) ? fre::kFractionBits16 : fre::kFractionBits;
  return args.value[fre::kM] == digits && args.value[fre::kFlush] == 0;
}

size_t bound(const Args& args, size_t n) {
  constexpr size_t kDenormalBits = 28;
  constexpr size_t kFramingSize = 3 * 4 + 4;  // three lengths and four last bytes
  constexpr size_t kChunkSize = 2 + 1;        // a length and a last byte
  const size_t most = std::max(kDenormalBits, 12 + static_cast<size_t>(args.value[fre::kM]));
  const size_t values = fre::is_short(args) ? n / 2 : n / 4;
  const size_t chunks = args.value[fre::kWays] == fre::kChunks ? values / fre::kChunkValues : 0;
  return values / 8 * most + (values % 8 * most + 7) / 8 + kFramingSize + n % 4 +
         chunks * kChunkSize;
}

}  // namespace

extern const Codec fre_codec;
const Codec fre_codec = {
    .name = "fre",
    .sentence = "floats within a fixed relative error: short mantissa, exponent differences",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
    .lossless_with = lossless_with,
};

}  // namespace wirepress
