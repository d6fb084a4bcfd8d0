// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx2.hpp"

#include "codecs/int4/simd.hpp"

namespace wirepress {

extern const Kernel int4_avx2;
const Kernel int4_avx2 = FloatChunks<Int4Simd<Avx2>>::kernel("avx2", has_avx2);

}  // namespace wirepress
