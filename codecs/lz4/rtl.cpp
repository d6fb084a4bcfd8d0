// SPDX-License-Identifier: Apache-2.0
// The FPGA decoder of lz4 (rtl/lz), simulated.
#include "Vwpr_lz4_dec.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel lz4_liblz4;

namespace {

struct Lz4 {
  using Decoder = Vwpr_lz4_dec;
  static constexpr const char* kName = "lz4";
  static const Kernel& portable() { return lz4_liblz4; }
};

}  // namespace

extern const Kernel lz4_rtl;
const Kernel lz4_rtl = rtl::LzCores<Lz4>::kernel();

}  // namespace wirepress
