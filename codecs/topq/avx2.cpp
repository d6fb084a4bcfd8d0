// SPDX-License-Identifier: Apache-2.0
#include "codecs/topq/vector.hpp"

namespace wirepress {

extern const Kernel topq_avx2;
const Kernel topq_avx2 = FloatChunks<topq::Format<topq::Vector>>::kernel("avx2", has_avx2);

}  // namespace wirepress
