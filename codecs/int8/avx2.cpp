// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx2.hpp"

#include "codecs/int8/simd.hpp"

namespace wirepress {

extern const Kernel int8_avx2;
const Kernel int8_avx2 = FloatChunks<Int8Simd<Avx2>>::kernel("avx2", has_avx2);

}  // namespace wirepress
