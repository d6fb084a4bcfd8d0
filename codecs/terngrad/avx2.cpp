// SPDX-License-Identifier: Apache-2.0
#include "codecs/terngrad/vector.hpp"

namespace wirepress {

extern const Kernel terngrad_avx2;
const Kernel terngrad_avx2 = chunks::kernel<terngrad::Vector>("avx2", has_avx2);

}  // namespace wirepress
