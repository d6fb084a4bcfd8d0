// SPDX-License-Identifier: Apache-2.0
#include "codecs/planes/planes.hpp"

namespace wirepress {

extern const Kernel planes_scalar;
const Kernel planes_scalar = planes::kernel<planes::PlainOps>("scalar", always_usable);

}  // namespace wirepress
