// SPDX-License-Identifier: Apache-2.0
// fp16: float32 values as IEEE half precision (spec.md).
#include "codecs/fp16/fp16.hpp"

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "stochastic"};

constexpr Param kParams[] = {
    {"round", 0, 1, 0, kRoundWords, "how values are cut; stochastic: right on average"},
    {"saturate", 0, 1, 0, nullptr,
     "1: finite values stay finite; 0: those above 65504 become infinite"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat32 || args->dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "fp16: takes float32, not %s", dtype_name(args->dtype));
}

}  // namespace

extern const Codec fp16_codec;
const Codec fp16_codec = {
    .name = "fp16",
    .sentence = "float32 as IEEE half precision: 2 bytes a value, relative error at most 2^-11",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .check = check,
    .bound = [](const Args&, size_t n) { return n / 4 * 2 + n % 4; },
};

}  // namespace wirepress
