// SPDX-License-Identifier: Apache-2.0
// The FPGA decoder of snappy (rtl/lz) with 16 bytes a beat, simulated.
#include "Vwpr_snappy_dec16.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel snappy_libsnappy;

namespace {

struct Snappy : rtl::Decoder16 {
  using Decoder = Vwpr_snappy_dec16;
  static constexpr const char* kName = "snappy";
  static const Kernel& portable() { return snappy_libsnappy; }
};

}  // namespace

extern const Kernel snappy_rtl16;
const Kernel snappy_rtl16 = rtl::LzCores<Snappy>::kernel();

}  // namespace wirepress
