// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx2.hpp"

#include "codecs/fp8/simd.hpp"

namespace wirepress {

extern const Kernel fp8_avx2;
const Kernel fp8_avx2 = FloatChunks<Fp8Simd<Avx2>>::kernel("avx2", has_avx2);

}  // namespace wirepress
