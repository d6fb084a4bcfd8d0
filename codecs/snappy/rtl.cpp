// SPDX-License-Identifier: Apache-2.0
// The FPGA decoder of snappy (rtl/lz), simulated.
#include "Vwpr_snappy_dec.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel snappy_libsnappy;

namespace {

struct Snappy {
  using Decoder = Vwpr_snappy_dec;
  static constexpr const char* kName = "snappy";
  static const Kernel& portable() { return snappy_libsnappy; }
};

}  // namespace

extern const Kernel snappy_rtl;
const Kernel snappy_rtl = rtl::LzCores<Snappy>::kernel();

}  // namespace wirepress
