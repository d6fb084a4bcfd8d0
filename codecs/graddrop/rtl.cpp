// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of the sparse codecs (rtl/sparse), simulated.
#include "codecs/common/sparse/rtl.hpp"

#include "codecs/graddrop/graddrop.hpp"

namespace wirepress {

extern const Kernel graddrop_rtl;
const Kernel graddrop_rtl = rtl::SparseCores<graddrop::Rules>::kernel();

}  // namespace wirepress
