// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/vector.hpp"

namespace wirepress {

extern const Kernel tbq_avx2;
const Kernel tbq_avx2 = tbq::kernel<tbq::Vector>("avx2", has_avx2);

}  // namespace wirepress
