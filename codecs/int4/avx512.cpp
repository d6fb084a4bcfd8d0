// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/avx512.hpp"

#include "codecs/int4/simd.hpp"

namespace wirepress {

extern const Kernel int4_avx512;
const Kernel int4_avx512 = FloatChunks<Int4Simd<Avx512>>::kernel("avx512", has_avx512);

}  // namespace wirepress
