// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/neon.hpp"

#include "codecs/topk/topk.hpp"

namespace wirepress {

extern const Kernel topk_neon;
const Kernel topk_neon =
    sparse::Functions<topk::Rules, sparse::Neon>::kernel("neon", always_usable);

}  // namespace wirepress
