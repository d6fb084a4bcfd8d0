// SPDX-License-Identifier: Apache-2.0
// fp8: float32 as 8-bit floats with a scale for each 4096 values (spec.md).
#include "codecs/fp8/fp8.hpp"

namespace wirepress {
namespace {

constexpr const char* kFormatWords[] = {"e4m3", "e5m2"};

constexpr Param kParams[] = {
    {"format", 0, 1, 0, kFormatWords, "e4m3: finer; e5m2: small values beside large ones"},
};

Status check(Args* args) {
  if (args->dtype == DType::kFloat32 || args->dtype == DType::kBytes) return {};
  return fail(Code::kParameter, "fp8: takes float32, not %s", dtype_name(args->dtype));
}

size_t bound(const Args& args, size_t n) { return chunks::code_size(Fp8Layout(args), n); }

}  // namespace

extern const Codec fp8_codec;
const Codec fp8_codec = {
    .name = "fp8",
    .sentence = "float32 as 8-bit floats with a scale for each 4096 values",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
