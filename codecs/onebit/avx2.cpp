// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/vector.hpp"

namespace wirepress {

extern const Kernel onebit_avx2;
const Kernel onebit_avx2 = chunks::kernel<onebit::Vector>("avx2", has_avx2);

}  // namespace wirepress
