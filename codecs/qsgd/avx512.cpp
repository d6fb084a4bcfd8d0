// SPDX-License-Identifier: Apache-2.0
#include "codecs/qsgd/vector.hpp"

namespace wirepress {

extern const Kernel qsgd_avx512;
const Kernel qsgd_avx512 = chunks::kernel<qsgd::Vector>("avx512", has_avx512);

}  // namespace wirepress
