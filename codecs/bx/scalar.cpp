// SPDX-License-Identifier: Apache-2.0
#include "codecs/bx/portable.hpp"

namespace wirepress {
namespace {

using namespace bx;

Status encode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  switch (args.dtype) {
    case DType::kFloat16:
      return encode_portable<Float16>(args, src, dst, written);
    case DType::kBfloat16:
      return encode_portable<Bfloat16>(args, src, dst, written);
    case DType::kFloat64:
      return encode_portable<Float64>(args, src, dst, written);
    default:
      return encode_portable<Float32>(args, src, dst, written);
  }
}

Status decode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  switch (args.dtype) {
    case DType::kFloat16:
      return decode_portable<Float16>(args, src, dst, written);
    case DType::kBfloat16:
      return decode_portable<Bfloat16>(args, src, dst, written);
    case DType::kFloat64:
      return decode_portable<Float64>(args, src, dst, written);
    default:
      return decode_portable<Float32>(args, src, dst, written);
  }
}

}  // namespace

extern const Kernel bx_scalar;
const Kernel bx_scalar = {
    .engine = "cpu",
    .variant = "scalar",
    .usable = always_usable,
    .open = nullptr,
    .close = nullptr,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
