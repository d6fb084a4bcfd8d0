// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx512.hpp"

#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {

extern const Kernel graddrop_avx512;
const Kernel graddrop_avx512 =
    sparse::Functions<graddrop::Rules, sparse::Avx512>::kernel("avx512", has_avx512);

}  // namespace wirepress
