// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/vector.hpp"

namespace wirepress {

extern const Kernel onebit_neon;
const Kernel onebit_neon = chunks::kernel<onebit::Vector>("neon", always_usable);

}  // namespace wirepress
