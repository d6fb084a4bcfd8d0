// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/vector.hpp"

namespace wirepress {

extern const Kernel tbq_neon;
const Kernel tbq_neon = tbq::kernel<tbq::Vector>("neon", always_usable);

}  // namespace wirepress
