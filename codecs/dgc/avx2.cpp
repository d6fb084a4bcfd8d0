// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx2.hpp"

#include "codecs/dgc/dgc.hpp"

namespace wirepress {

extern const Kernel dgc_avx2;
const Kernel dgc_avx2 = sparse::Functions<dgc::Rules, sparse::Avx2>::kernel("avx2", has_avx2);

}  // namespace wirepress
