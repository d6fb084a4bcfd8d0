// SPDX-License-Identifier: Apache-2.0
// int8: blocks of float32 values as a scale and signed bytes (spec.md).
#include "codecs/int8/int8.hpp"

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "stochastic"};

constexpr Param kParams[] = {
    {"block", 7, 12, 8, nullptr, "a scale for each 2^block values"},
    {"round", 0, 1, 0, kRoundWords, "stochastic: right on average"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat32 || args->dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "int8: takes float32, not %s", dtype_name(args->dtype));
}

size_t bound(const Args& args, size_t n) { return chunks::code_size(Int8Layout(args), n); }

}  // namespace

extern const Codec int8_codec;
const Codec int8_codec = {
    .name = "int8",
    .sentence = "float32 as 8-bit integers with a scale for each block of values",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
