// SPDX-License-Identifier: Apache-2.0
// graddrop: gradients: the values above a sampled threshold (spec.md).
#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"ratio", 0, 0, real_param(1, -2), nullptr, "about the share of values that is sent, 1e-9 to 1",
     true},
    {"sample", 0, 0, real_param(1, -2), nullptr,
     "the share of values that the threshold is estimated from, 1e-9 to 1", true},
};

Status check(Args* args) {
  WPR_TRY(sparse::check_dtype("graddrop", args->dtype));
  WPR_TRY(sparse::check_share("graddrop", "ratio", args->value[graddrop::kRatio]));
  return sparse::check_share("graddrop", "sample", args->value[graddrop::kSample]);
}

}  // namespace

extern const Codec graddrop_codec;
const Codec graddrop_codec = {
    .name = "graddrop",
    .sentence = "gradients: the values above a sampled threshold",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .sparse = true,
    .wants_feedback = true,
    .check = check,
    .bound = [](const Args&, size_t n) { return sparse::bound(n); },
};

}  // namespace wirepress
