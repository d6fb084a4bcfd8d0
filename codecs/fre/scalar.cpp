// SPDX-License-Identifier: Apache-2.0
// The reference kernel: code.hpp and nothing more.
#include "codecs/fre/code.hpp"

namespace wirepress {

extern const Kernel fre_scalar;
const Kernel fre_scalar = make_kernel<Portable>("scalar", always_usable);

}  // namespace wirepress
