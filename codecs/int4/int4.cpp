// SPDX-License-Identifier: Apache-2.0
// int4: blocks of float32 values as a scale and signed nibbles (spec.md).
#include "codecs/int4/int4.hpp"

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "stochastic"};

constexpr Param kParams[] = {
    {"block", 7, 12, 9, nullptr, "a scale for each 2^block values"},
    {"round", 0, 1, 0, kRoundWords, "stochastic: right on average"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat32 || args->dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "int4: takes float32, not %s", dtype_name(args->dtype));
}

size_t bound(const Args& args, size_t n) { return chunks::code_size(Int4Layout(args), n); }

}  // namespace

extern const Codec int4_codec;
const Codec int4_codec = {
    .name = "int4",
    .sentence = "float32 as 4-bit integers with a scale for each block of values",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
