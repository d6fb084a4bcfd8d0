// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx512.hpp"

#include "codecs/bf16/simd.hpp"

namespace wirepress {

extern const Kernel bf16_avx512;
const Kernel bf16_avx512 = FloatChunks<Bf16Simd<Avx512>>::kernel("avx512", has_avx512);

}  // namespace wirepress
