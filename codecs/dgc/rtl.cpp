// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of the sparse codecs (rtl/sparse), simulated.
#include "codecs/common/sparse/rtl.hpp"

#include "codecs/dgc/dgc.hpp"

namespace wirepress {

extern const Kernel dgc_rtl;
const Kernel dgc_rtl = rtl::SparseCores<dgc::Rules>::kernel();

}  // namespace wirepress
