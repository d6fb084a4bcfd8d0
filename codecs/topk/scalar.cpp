// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/scalar.hpp"

#include "codecs/topk/topk.hpp"

namespace wirepress {

extern const Kernel topk_scalar;
const Kernel topk_scalar =
    sparse::Functions<topk::Rules, sparse::Scalar>::kernel("scalar", always_usable);

}  // namespace wirepress
