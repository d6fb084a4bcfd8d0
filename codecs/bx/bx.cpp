// SPDX-License-Identifier: Apache-2.0
// bx: floats with m fraction bits and a block exponent, in bit planes (spec.md).
#include "codecs/bx/bx.hpp"

namespace wirepress {
namespace {

constexpr const char* kRoundWords[] = {"nearest", "truncate", "midpoint"};

constexpr Param kParams[] = {
    {"m", 0, 52, 5, nullptr,
     "fraction bits kept; the relative error is at most 2^-(m+1), or 2^-m; 0: all, lossless", false,
     false, Bounds::kFractionBits},
    {"round", 0, 2, bx::kNearest, kRoundWords,
     "how the fraction is cut; midpoint: cut, and half of what was cut is added in decoding"},
    {"flush", 0, 1, 0, nullptr, "1: denormals and -0 become +0"},
};

struct Sizes {
  unsigned digits;  // of the fraction field
  unsigned exponent_bits;
  size_t header;
  size_t word;
};

template <typename F>
Sizes sizes_of_float() {
  return {F::kDigits, F::kExponentBits, sizeof(typename F::Header), sizeof(typename F::Word)};
}

Sizes sizes_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return sizes_of_float<bx::Float16>();
    case DType::kBfloat16:
      return sizes_of_float<bx::Bfloat16>();
    case DType::kFloat64:
      return sizes_of_float<bx::Float64>();
    default:
      return sizes_of_float<bx::Float32>();
  }
}

Status check(Args* args) {
  switch (args->dtype) {
    case DType::kBytes:
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      break;
    default:
      return fail(Code::kParameter,
                  "bx: takes float16, bfloat16, float32, float64 (or bytes that are float32), "
                  "not %s",
                  dtype_name(args->dtype));
  }
  const int digits = static_cast<int>(sizes_of(args->dtype).digits);
  int& m = args->value[bx::kM];
  if (m == 0) m = digits;
  if (m > digits)
    return fail(Code::kParameter, "bx: m can be 1 to %d for %s, not %d", digits,
                dtype_name(args->dtype), m);
  return {};
}

bool lossless_with(const Args& args) {
  return args.value[bx::kM] == static_cast<int>(sizes_of(args.dtype).digits) &&
         args.value[bx::kFlush] == 0;
}

size_t bound(const Args& args, size_t n) {
  const Sizes sizes = sizes_of(args.dtype);
  const size_t m = static_cast<size_t>(args.value[bx::kM]);
  // Denormals that are not flushed have all their bits.
  const size_t planes = args.value[bx::kFlush] ? 1 + m + sizes.exponent_bits : 8 * sizes.word;
  const size_t groups = (n / sizes.word + bx::kGroup - 1) / bx::kGroup;
  const size_t chunks = (groups + bx::kChunkGroups - 1) / bx::kChunkGroups;
  return groups * (sizes.header + 2 * planes) + bx::bitmap_size(groups) + chunks * bx::kHeadSize +
         n % sizes.word;
}

}  // namespace

extern const Codec bx_codec;
const Codec bx_codec = {
    .name = "bx",
    .sentence = "floats within a fixed relative error, or lossless: bit planes, block exponents",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .typed = true,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
    .lossless_with = lossless_with,
};

}  // namespace wirepress
