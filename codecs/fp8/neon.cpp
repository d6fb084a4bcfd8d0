// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/neon.hpp"

#include "codecs/fp8/simd.hpp"

namespace wirepress {

extern const Kernel fp8_neon;
const Kernel fp8_neon = FloatChunks<Fp8Simd<Neon>>::kernel("neon", always_usable);

}  // namespace wirepress
