// SPDX-License-Identifier: Apache-2.0
#include "codecs/signsgd/vector.hpp"

namespace wirepress {

extern const Kernel signsgd_neon;
const Kernel signsgd_neon = chunks::kernel<signsgd::Vector>("neon", always_usable);

}  // namespace wirepress
