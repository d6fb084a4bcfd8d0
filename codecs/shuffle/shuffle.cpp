// SPDX-License-Identifier: Apache-2.0
// shuffle: all first bytes of the elements, then all second bytes ... (spec.md).
#include "base/kernel.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"size", 0, 64, 0, nullptr, "bytes per element; 0: that of the dtype, 4 for opaque bytes"},
};

// Opaque bytes are most often 32-bit numbers whose type nobody said (MPI_BYTE, files).
constexpr int kOpaqueSize = 4;

Status resolve(Args* args) {
  if (args->value[0] == 0)
    args->value[0] =
        args->dtype == DType::kBytes ? kOpaqueSize : static_cast<int>(dtype_size(args->dtype));
  return {};
}

}  // namespace

extern const Codec shuffle_codec;
const Codec shuffle_codec = {
    .name = "shuffle",
    .sentence = "byte transposition by element size: put it before a compressor",
    .params = kParams,
    .lossless = true,
    .exact_encode = true,
    .keeps_size = true,
    .needs_size = false,
    .check = resolve,
    .bound = [](const Args&, size_t n) { return n; },
};

}  // namespace wirepress
