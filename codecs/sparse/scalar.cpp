// SPDX-License-Identifier: Apache-2.0
#include "codecs/sparse/plain.hpp"

namespace wirepress {

extern const Kernel sparse_scalar;
const Kernel sparse_scalar = Sparse<PlainOps>::kernel("scalar", always_usable);

}  // namespace wirepress
