// SPDX-License-Identifier: Apache-2.0
// The larger builds of the FPGA cores of snappy (rtl/lz), simulated: a decoder with 16 bytes a
// beat, an encoder whose matcher compares more distances.
#include "Vwpr_snappy_dec16.h"
#include "Vwpr_snappy_enc_more.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel snappy_libsnappy;

namespace {

struct Snappy {
  using Encoder = Vwpr_snappy_enc_more;
  using Decoder = Vwpr_snappy_dec16;
  static constexpr const char* kName = "snappy";
  static constexpr const char* kVariant = "verilator16";
  static constexpr size_t kDecoderBeat = 16;
  static bool takes(const Args&) { return true; }
  static const Kernel& portable() { return snappy_libsnappy; }
};

}  // namespace

extern const Kernel snappy_rtl16;
const Kernel snappy_rtl16 = rtl::LzCores<Snappy>::kernel();

}  // namespace wirepress
