// SPDX-License-Identifier: Apache-2.0
// bf16: the upper halves of float32 values (spec.md).
#include "codecs/bf16/bf16.hpp"

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "stochastic"};

constexpr Param kParams[] = {
    {"round", 0, 1, 0, kRoundWords, "how the lower halves go; stochastic: right on average"},
    {"saturate", 0, 1, 0, nullptr, "1: finite values stay finite; 0: the largest become infinite"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat32 || args->dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "bf16: takes float32, not %s", dtype_name(args->dtype));
}

}  // namespace

extern const Codec bf16_codec;
const Codec bf16_codec = {
    .name = "bf16",
    .sentence = "float32 as bfloat16: 2 bytes a value, relative error below 2^-8",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .check = check,
    .bound = [](const Args&, size_t n) { return n / 4 * 2 + n % 4; },
};

}  // namespace wirepress
