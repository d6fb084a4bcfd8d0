// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/neon.hpp"

#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {

extern const Kernel graddrop_neon;
const Kernel graddrop_neon =
    sparse::Functions<graddrop::Rules, sparse::Neon>::kernel("neon", always_usable);

}  // namespace wirepress
