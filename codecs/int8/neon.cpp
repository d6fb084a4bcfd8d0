// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/neon.hpp"

#include "codecs/int8/simd.hpp"

namespace wirepress {

extern const Kernel int8_neon;
const Kernel int8_neon = FloatChunks<Int8Simd<Neon>>::kernel("neon", always_usable);

}  // namespace wirepress
