// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx2.hpp"

#include "codecs/bf16/simd.hpp"

namespace wirepress {

extern const Kernel bf16_avx2;
const Kernel bf16_avx2 = FloatChunks<Bf16Simd<Avx2>>::kernel("avx2", has_avx2);

}  // namespace wirepress
