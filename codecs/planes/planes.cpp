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
    .sentence = "floats without loss: zeros left out, exponents in a partition code",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .former_id = 0x11,
    .check = check,
    // Besides the data flags, the base of doubles, a bit for each element that is not 0, of each
    // plane, the signs and those bits a table at most, and of each chunk of them a byte; the signs
    // come twice.
    .bound =
        [](const Args& args, size_t n) {
          const size_t size = args.dtype == DType::kBytes ? 4 : dtype_size(args.dtype);
          const size_t n_elements = n / size, chunks = n_elements / 16384 + 1;
          return n + 3 + n_elements / 8 + (size + 2) * 132 + chunks * (size + 2050);
        },
};

}  // namespace wirepress
