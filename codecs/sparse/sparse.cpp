// SPDX-License-Identifier: Apache-2.0
// sparse: integers that are mostly zero: positions, signs, and magnitudes level by level (spec.md).
#include "base/kernel.hpp"

namespace wirepress {
namespace {

Status check(Args* args) {
  switch (args->dtype) {
    case DType::kBytes:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return {};
    default:
      return fail(Code::kParameter,
                  "sparse: takes int8, int16, int32 (or bytes that are int8), not %s",
                  dtype_name(args->dtype));
  }
}

}  // namespace

extern const Codec sparse_codec;
const Codec sparse_codec = {
    .name = "sparse",
    .sentence = "integers that are mostly zero, such as steps between two states of weights",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .check = check,
    // A head of at most 3 bytes for each group of 65,536 elements, of a byte at least.
    .bound = [](const Args&, size_t n) { return n + 3 * ((n + 65535) / 65536); },
};

}  // namespace wirepress
