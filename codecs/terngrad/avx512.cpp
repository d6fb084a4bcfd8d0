// SPDX-License-Identifier: Apache-2.0
#include "codecs/terngrad/vector.hpp"

namespace wirepress {

extern const Kernel terngrad_avx512;
const Kernel terngrad_avx512 = chunks::kernel<terngrad::Vector>("avx512", has_avx512);

}  // namespace wirepress
