// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx512.hpp"

#include "codecs/fp16/simd.hpp"

namespace wirepress {

extern const Kernel fp16_avx512;
const Kernel fp16_avx512 = FloatChunks<Fp16Simd<Avx512>>::kernel("avx512", has_avx512);

}  // namespace wirepress
