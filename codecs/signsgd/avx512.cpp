// SPDX-License-Identifier: Apache-2.0
#include "codecs/signsgd/vector.hpp"

namespace wirepress {

extern const Kernel signsgd_avx512;
const Kernel signsgd_avx512 = chunks::kernel<signsgd::Vector>("avx512", has_avx512);

}  // namespace wirepress
