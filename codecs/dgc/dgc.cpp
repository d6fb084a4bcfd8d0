// SPDX-License-Identifier: Apache-2.0
// dgc: gradients: the largest values by a sampled threshold, at most a share (spec.md).
#include "codecs/dgc/dgc.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"ratio", 0, 0, real_param(1, -3), nullptr,
     "the largest share of values that is sent, 1e-9 to 1", true},
    {"sample", 0, 0, real_param(1, -2), nullptr,
     "the share of values that the threshold is estimated from, 1e-9 to 1", true},
};

Status check(Args* args) {
  WPR_TRY(sparse::check_dtype("dgc", args->dtype));
  WPR_TRY(sparse::check_share("dgc", "ratio", args->value[dgc::kRatio]));
  return sparse::check_share("dgc", "sample", args->value[dgc::kSample]);
}

}  // namespace

extern const Codec dgc_codec;
const Codec dgc_codec = {
    .name = "dgc",
    .sentence = "gradients: the largest values by a sampled threshold, at most a share",
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
