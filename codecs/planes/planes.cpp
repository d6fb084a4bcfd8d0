// SPDX-License-Identifier: Apache-2.0
// planes: floats byte by byte, and a partition code for the bytes that are not noise (spec.md).
#include "base/kernel.hpp"

namespace wirepress {
namespace {

Status check(Args* args) {
  switch (args->dtype) {
    case DType::kBytes:
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return {};
    default:
      return fail(Code::kParameter,
                  "planes: takes float16, bfloat16, float32, float64 (or bytes that are float32), "
                  "not %s",
                  dtype_name(args->dtype));
  }
}

}  // namespace

extern const Codec planes_codec;
const Codec planes_codec = {
    .name = "planes",
    .sentence = "floats without loss: zero lines left out, exponents in a partition code",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .check = check,
    // Besides the data flags, the base of doubles, of each plane and the signs a table at most, and
    // of each chunk of them a byte; the signs come twice.
    .bound =
        [](const Args& args, size_t n) {
          const size_t planes = 1 + (args.dtype == DType::kBytes ? 4 : dtype_size(args.dtype));
          const size_t chunks = n / (planes - 1) / 8192 + 1;
          return n + 3 + planes * 132 + chunks * (planes + 1025);
        },
};

}  // namespace wirepress
