// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/scalar.hpp"

#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {

extern const Kernel graddrop_scalar;
const Kernel graddrop_scalar =
    sparse::Functions<graddrop::Rules, sparse::Scalar>::kernel("scalar", always_usable);

}  // namespace wirepress
