// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/neon.hpp"

#include "codecs/int4/simd.hpp"

namespace wirepress {

extern const Kernel int4_neon;
const Kernel int4_neon = FloatChunks<Int4Simd<Neon>>::kernel("neon", always_usable);

}  // namespace wirepress
