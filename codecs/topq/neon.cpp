// SPDX-License-Identifier: Apache-2.0
#include "codecs/topq/vector.hpp"

namespace wirepress {

extern const Kernel topq_neon;
const Kernel topq_neon = FloatChunks<topq::Format<topq::Vector>>::kernel("neon", always_usable);

}  // namespace wirepress
