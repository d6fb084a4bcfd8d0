// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/simd/neon.hpp"

#include "codecs/bf16/simd.hpp"

namespace wirepress {

extern const Kernel bf16_neon;
const Kernel bf16_neon = FloatChunks<Bf16Simd<Neon>>::kernel("neon", always_usable);

}  // namespace wirepress
