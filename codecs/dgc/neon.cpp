// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/neon.hpp"

#include "codecs/dgc/dgc.hpp"

namespace wirepress {

extern const Kernel dgc_neon;
const Kernel dgc_neon = sparse::Functions<dgc::Rules, sparse::Neon>::kernel("neon", always_usable);

}  // namespace wirepress
