// SPDX-License-Identifier: Apache-2.0
// The larger builds of the FPGA cores of lz4 (rtl/lz), simulated: a decoder with 16 bytes a beat,
// an encoder whose matcher compares more distances.
#include "Vwpr_lz4_dec16.h"
#include "Vwpr_lz4_enc_more.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel lz4_liblz4;

namespace {

struct Lz4 {
  using Encoder = Vwpr_lz4_enc_more;
  using Decoder = Vwpr_lz4_dec16;
  static constexpr const char* kName = "lz4";
  static constexpr const char* kVariant = "verilator16";
  static constexpr size_t kDecoderBeat = 16;
  // High compression is the library's.
  static bool takes(const Args& args) { return args.value[0] <= 2; }
  static const Kernel& portable() { return lz4_liblz4; }
};

}  // namespace

extern const Kernel lz4_rtl16;
const Kernel lz4_rtl16 = rtl::LzCores<Lz4>::kernel();

}  // namespace wirepress
