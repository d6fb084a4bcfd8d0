// SPDX-License-Identifier: Apache-2.0
#include "codecs/signsgd/vector.hpp"

namespace wirepress {

extern const Kernel signsgd_avx2;
const Kernel signsgd_avx2 = chunks::kernel<signsgd::Vector>("avx2", has_avx2);

}  // namespace wirepress
