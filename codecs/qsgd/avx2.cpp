// SPDX-License-Identifier: Apache-2.0
#include "codecs/qsgd/vector.hpp"

namespace wirepress {

extern const Kernel qsgd_avx2;
const Kernel qsgd_avx2 = chunks::kernel<qsgd::Vector>("avx2", has_avx2);

}  // namespace wirepress
