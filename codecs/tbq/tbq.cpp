// SPDX-License-Identifier: Apache-2.0
// tbq: -tau, 0 or tau, listed or in bit planes (spec.md).
#include "codecs/tbq/tbq.hpp"

namespace wirepress {
namespace {

constexpr double kTauLeast = 1e-30;
constexpr double kTauMost = 1e30;

constexpr const char* kOfWords[] = {"mean", "one"};

constexpr Param kParams[] = {
    {"tau", 0, 0, real_param(3, 0), nullptr, "the threshold, and what is sent for what reaches it",
     true},
    {"of", 0, 1, tbq::kMean, kOfWords,
     "what tau counts: the mean of |x| over 4096 values, or 1 (such codes can be summed)"},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "tbq: takes float32, not %s", dtype_name(args->dtype));
  const double tau = args->real(tbq::kTau);
  if (!(tau >= kTauLeast && tau <= kTauMost))
    return fail(Code::kParameter, "tbq: tau must be from %g to %g, not %g", kTauLeast, kTauMost,
                tau);
  return {};
}

}  // namespace

extern const Codec tbq_codec;
const Codec tbq_codec = {
    .name = "tbq",
    .sentence = "gradients as -tau, 0 or tau, few of them: for error feedback (threshold binary)",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .stable = false,
    .wants_feedback = true,
    .check = check,
    .bound = tbq::bound,
};

}  // namespace wirepress
