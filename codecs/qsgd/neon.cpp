// SPDX-License-Identifier: Apache-2.0
#include "codecs/qsgd/vector.hpp"

namespace wirepress {

extern const Kernel qsgd_neon;
const Kernel qsgd_neon = chunks::kernel<qsgd::Vector>("neon", always_usable);

}  // namespace wirepress
