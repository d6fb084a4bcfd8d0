// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/vector.hpp"

namespace wirepress {

extern const Kernel tbq_avx512;
const Kernel tbq_avx512 = tbq::kernel<tbq::Vector>("avx512", has_avx512);

}  // namespace wirepress
