// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx2.hpp"

#include "codecs/fp16/simd.hpp"

namespace wirepress {

extern const Kernel fp16_avx2;
const Kernel fp16_avx2 = FloatChunks<Fp16Simd<Avx2>>::kernel("avx2", has_avx2);

}  // namespace wirepress
