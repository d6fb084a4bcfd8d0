// SPDX-License-Identifier: Apache-2.0
#include "codecs/topq/vector.hpp"

namespace wirepress {

extern const Kernel topq_avx512;
const Kernel topq_avx512 = FloatChunks<topq::Format<topq::Vector>>::kernel("avx512", has_avx512);

}  // namespace wirepress
