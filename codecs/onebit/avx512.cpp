// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/vector.hpp"

namespace wirepress {

extern const Kernel onebit_avx512;
const Kernel onebit_avx512 = chunks::kernel<onebit::Vector>("avx512", has_avx512);

}  // namespace wirepress
