// SPDX-License-Identifier: Apache-2.0
#include "codecs/terngrad/vector.hpp"

namespace wirepress {

extern const Kernel terngrad_neon;
const Kernel terngrad_neon = chunks::kernel<terngrad::Vector>("neon", always_usable);

}  // namespace wirepress
