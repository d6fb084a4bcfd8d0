// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of snappy (rtl/lz), simulated.
#include "Vwpr_snappy_dec.h"
#include "Vwpr_snappy_enc.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel snappy_libsnappy;

namespace {

struct Snappy {
  using Encoder = Vwpr_snappy_enc;
  using Decoder = Vwpr_snappy_dec;
  static constexpr const char* kName = "snappy";
  static constexpr const char* kVariant = "verilator";
  static constexpr size_t kDecoderBeat = 8;
  static bool takes(const Args&) { return true; }
  static const Kernel& portable() { return snappy_libsnappy; }
};

}  // namespace

extern const Kernel snappy_rtl;
const Kernel snappy_rtl = rtl::LzCores<Snappy>::kernel();

}  // namespace wirepress
