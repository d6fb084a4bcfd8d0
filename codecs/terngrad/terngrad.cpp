// SPDX-License-Identifier: Apache-2.0
// terngrad: stochastic -1, 0 or 1 for each value and one scale a chunk (spec.md).
#include "codecs/terngrad/terngrad.hpp"

namespace wirepress {
namespace {

constexpr double kClipLeast = 0.1;
constexpr double kClipMost = 100;

constexpr Param kParams[] = {
    {"clip", 0, 0, 0, nullptr, "larger values count as this many standard deviations; 0: off",
     true},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "terngrad: takes float32, not %s", dtype_name(args->dtype));
  const double clip = args->real(terngrad::kClip);
  if (clip != 0 && !(clip >= kClipLeast && clip <= kClipMost))
    return fail(Code::kParameter, "terngrad: clip must be 0 or from %g to %g, not %g", kClipLeast,
                kClipMost, clip);
  return {};
}

size_t bound(const Args&, size_t n) {
  return chunks::code_size(
      chunks::PlaneLayout{terngrad::kValues, terngrad::kHeadSize, terngrad::kPlanes}, n);
}

}  // namespace

extern const Codec terngrad_codec;
const Codec terngrad_codec = {
    .name = "terngrad",
    .sentence = "gradients at 2 bits a value: stochastic -s, 0 or s, unbiased (TernGrad)",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .stable = false,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
