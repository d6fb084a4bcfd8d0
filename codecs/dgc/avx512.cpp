// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx512.hpp"

#include "codecs/dgc/dgc.hpp"

namespace wirepress {

extern const Kernel dgc_avx512;
const Kernel dgc_avx512 =
    sparse::Functions<dgc::Rules, sparse::Avx512>::kernel("avx512", has_avx512);

}  // namespace wirepress
