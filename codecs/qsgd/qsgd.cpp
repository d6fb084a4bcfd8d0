// SPDX-License-Identifier: Apache-2.0
// qsgd: stochastic rounding to a few levels, a scale for 512 values (spec.md).
#include "codecs/qsgd/qsgd.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"bits", 2, qsgd::kMostBits, 4, nullptr, "bits a value: a sign and 2^(bits-1) magnitudes"},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "qsgd: takes float32, not %s", dtype_name(args->dtype));
  return {};
}

size_t bound(const Args& args, size_t n) {
  return chunks::code_size(
      chunks::PlaneLayout{qsgd::kValues, qsgd::kHeadSize, qsgd::Levels(args).bits}, n);
}

}  // namespace

extern const Codec qsgd_codec;
const Codec qsgd_codec = {
    .name = "qsgd",
    .sentence = "gradients at 2 to 8 bits a value, rounded stochastically, unbiased (QSGD)",
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
