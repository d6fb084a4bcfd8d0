// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/sparse/avx2.hpp"

#include "codecs/topk/topk.hpp"

namespace wirepress {

extern const Kernel topk_avx2;
const Kernel topk_avx2 = sparse::Functions<topk::Rules, sparse::Avx2>::kernel("avx2", has_avx2);

}  // namespace wirepress
