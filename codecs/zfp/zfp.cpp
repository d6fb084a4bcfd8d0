// SPDX-License-Identifier: Apache-2.0
// zfp: a zfp stream with an index of its groups of cells (spec.md).
#include "codecs/zfp/zfp.hpp"

namespace wirepress {
namespace {

using namespace zfp;

constexpr Param kParams[] = {
    {"accuracy", 0, 0, 0, nullptr, "the largest absolute error, such as 1e-3; floats only", true,
     false, Bounds::kAbsolute},
    {"rate", 0, 0, 0, nullptr, "bits a value, 0.125 to 64: the size is fixed, the error is not",
     true},
    {"precision", 0, 64, 0, nullptr, "bit planes kept, 1 to 64"},
};

Status check(Args* args) {
  switch (args->dtype) {
    case DType::kBytes:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
      break;
    default:
      return fail(Code::kParameter,
                  "zfp: takes float32, float64, int32 and int64 (or bytes that are float32), not "
                  "%s",
                  dtype_name(args->dtype));
  }
  const int given = (args->value[kAccuracyParam] != 0) + (args->value[kRateParam] != 0) +
                    (args->value[kPrecisionParam] != 0);
  if (given > 1)
    return fail(Code::kParameter, "zfp: one of accuracy, rate and precision, not %d of them",
                given);
  if (args->value[kAccuracyParam] != 0 && type_of(*args).exponent_bits == 0)
    return fail(Code::kParameter, "zfp: accuracy is for floats; %s takes rate or precision",
                dtype_name(args->dtype));
  const double rate = args->real(kRateParam);
  if (args->value[kRateParam] != 0 && (rate < 0.125 || rate > 64))
    return fail(Code::kParameter, "zfp: rate must be 0.125 to 64, not %g", rate);
  return {};
}

bool lossless_with(const Args& args) { return mode_of(args) == Mode::kReversible; }

size_t bound(const Args& args, size_t n) {
  const Grid grid = grid_of(args, n);
  const size_t words = (grid.cells * most_cell_bits(args, grid) + 63) / 64;
  return Head::kSize + 8 * words + grid.tail + index_size(grid.groups, Head::kMostWidth);
}

}  // namespace

extern const Codec zfp_codec;
const Codec zfp_codec = {
    .name = "zfp",
    .sentence = "smooth arrays of floats or integers in 1 to 4 dimensions, by libzfp",
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
    .lossless_with = lossless_with,
};

}  // namespace wirepress
