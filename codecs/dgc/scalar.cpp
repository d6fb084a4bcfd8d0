// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/scalar.hpp"

#include "codecs/dgc/dgc.hpp"

namespace wirepress {

extern const Kernel dgc_scalar;
const Kernel dgc_scalar =
    sparse::Functions<dgc::Rules, sparse::Scalar>::kernel("scalar", always_usable);

}  // namespace wirepress
