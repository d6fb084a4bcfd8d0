// SPDX-License-Identifier: Apache-2.0
// topk: gradients: exactly the largest values of a block (spec.md).
#include "codecs/topk/topk.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"ratio", 0, 0, real_param(1, -3), nullptr, "the share of values that is sent, 1e-9 to 1",
     true},
};

Status check(Args* args) {
  WPR_TRY(sparse::check_dtype("topk", args->dtype));
  return sparse::check_share("topk", "ratio", args->value[topk::kRatio]);
}

}  // namespace

extern const Codec topk_codec;
const Codec topk_codec = {
    .name = "topk",
    .sentence = "gradients: exactly the largest values of a block",
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
