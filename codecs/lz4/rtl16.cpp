// SPDX-License-Identifier: Apache-2.0
// The FPGA decoder of lz4 (rtl/lz) with 16 bytes a beat, simulated.
#include "Vwpr_lz4_dec16.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel lz4_liblz4;

namespace {

struct Lz4 : rtl::Decoder16 {
  using Decoder = Vwpr_lz4_dec16;
  static constexpr const char* kName = "lz4";
  static const Kernel& portable() { return lz4_liblz4; }
};

}  // namespace

extern const Kernel lz4_rtl16;
const Kernel lz4_rtl16 = rtl::LzCores<Lz4>::kernel();

}  // namespace wirepress
