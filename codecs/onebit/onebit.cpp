// SPDX-License-Identifier: Apache-2.0
// onebit: one bit a value and two means a chunk (spec.md).
#include "codecs/onebit/onebit.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {.name = "block",
     .min = onebit::kLeastBlock,
     .max = onebit::kMostBlock,
     .fallback = onebit::kMostBlock,
     .words = nullptr,
     .sentence = "two means for each 2^block values; small ones for error feedback",
     .later = true},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "onebit: takes float32, not %s", dtype_name(args->dtype));
  return {};
}

size_t bound(const Args& args, size_t n) {
  return chunks::code_size(chunks::PlaneLayout{onebit::values(args), onebit::kHeadSize, 1}, n);
}

}  // namespace

extern const Codec onebit_codec;
const Codec onebit_codec = {
    .name = "onebit",
    .sentence = "gradients at 1 bit a value: its sign, and two means for 4096 (1-bit SGD)",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .stable = false,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
