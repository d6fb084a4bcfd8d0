// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/neon.hpp"

#include "codecs/fp16/simd.hpp"

namespace wirepress {

extern const Kernel fp16_neon;
const Kernel fp16_neon = FloatChunks<Fp16Simd<Neon>>::kernel("neon", always_usable);

}  // namespace wirepress
