// SPDX-License-Identifier: Apache-2.0
// sz3: interpolation of floats within an error bound (spec.md).
#include "codecs/sz3/sz3.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"abs", 0, 0, 0, nullptr, "largest absolute error", true, false, Bounds::kAbsolute, true},
    {"rel", 0, 0, 0, nullptr, "largest error as a part of the block's range of values", true, false,
     Bounds::kNothing, true},
    {"psnr", 0, 0, 0, nullptr, "lowest peak signal-to-noise ratio of a block, in decibels", true,
     false, Bounds::kNothing, true},
    {"pw", 0, 0, 0, nullptr, "largest error as a part of each value", true, false, Bounds::kNothing,
     true},
};

Status check(Args* args) {
  const DType dtype = args->dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kBytes)
    return fail(Code::kParameter, "sz3: takes float32, float64, not %s", dtype_name(dtype));
  int given = 0;
  for (size_t i = 0; i < std::size(kParams); ++i) given += args->value[i] != 0;
  if (given > 1) return fail(Code::kParameter, "sz3: give one of abs, rel, psnr and pw");
  if (given == 0) args->value[sz3::kRel] = real_param(1, -3);
  if (args->real(sz3::kRel) > 1 || args->real(sz3::kPw) >= 1)
    return fail(Code::kParameter, "sz3: rel is at most 1, and pw less than 1");
  if (args->real(sz3::kPsnr) > sz3::kMostPsnr)
    return fail(Code::kParameter, "sz3: psnr is at most %g", sz3::kMostPsnr);
  return {};
}

size_t bound(const Args&, size_t n) { return sz3::kMethodSize + n; }

}  // namespace

extern const Codec sz3_codec;
const Codec sz3_codec = {
    .name = "sz3",
    .sentence = "floats within an error bound: SZ3's interpolation, up to 4-D",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .by_slabs = true,
    .stable = false,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
