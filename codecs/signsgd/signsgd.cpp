// SPDX-License-Identifier: Apache-2.0
// signsgd: one bit a value and at most one scale a chunk (spec.md).
#include "codecs/signsgd/signsgd.hpp"

namespace wirepress {
namespace {

constexpr const char* kScaleWords[] = {"mean", "none"};

constexpr Param kParams[] = {
    {"scale", 0, 1, signsgd::kMean, kScaleWords,
     "what a sign stands for: the mean of |x| over 4096 values, or 1 (votes)"},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "signsgd: takes float32, not %s", dtype_name(args->dtype));
  return {};
}

size_t bound(const Args&, size_t n) {
  return chunks::code_size(chunks::PlaneLayout{signsgd::kValues, signsgd::kHeadSize, 1}, n);
}

}  // namespace

extern const Codec signsgd_codec;
const Codec signsgd_codec = {
    .name = "signsgd",
    .sentence = "gradients at 1 bit a value: its sign, times the mean of |x| or 1 (signSGD)",
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
