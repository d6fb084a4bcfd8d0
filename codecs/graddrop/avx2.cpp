// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx2.hpp"

#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {

extern const Kernel graddrop_avx2;
const Kernel graddrop_avx2 =
    sparse::Functions<graddrop::Rules, sparse::Avx2>::kernel("avx2", has_avx2);

}  // namespace wirepress
