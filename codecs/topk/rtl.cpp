// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of the sparse codecs (rtl/sparse), simulated.
#include "codecs/common/sparse/rtl.hpp"

#include "codecs/topk/topk.hpp"

namespace wirepress {

extern const Kernel topk_rtl;
const Kernel topk_rtl = rtl::SparseCores<topk::Rules>::kernel();

}  // namespace wirepress
