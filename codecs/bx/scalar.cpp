// SPDX-License-Identifier: Apache-2.0
#include "codecs/bx/kernel.hpp"

namespace wirepress {
namespace {

using namespace bx;

struct Scalar {
  template <typename F>
  static EncodeChunk encoder(const Setting&) {
    return encode_chunk<F>;
  }
  template <typename F>
  static DecodeChunk decoder(const Setting&) {
    return decode_chunk<F>;
  }
};

}  // namespace

extern const Kernel bx_scalar;
const Kernel bx_scalar = ChunkKernel<Scalar>::of("scalar", always_usable);

}  // namespace wirepress
