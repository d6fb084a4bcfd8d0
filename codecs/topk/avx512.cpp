// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx512.hpp"

#include "codecs/topk/topk.hpp"

namespace wirepress {

extern const Kernel topk_avx512;
const Kernel topk_avx512 =
    sparse::Functions<topk::Rules, sparse::Avx512>::kernel("avx512", has_avx512);

}  // namespace wirepress
