// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of lz4 (rtl/lz), simulated.
#include "Vwpr_lz4_dec.h"
#include "Vwpr_lz4_enc.h"
#include "engines/rtl/lz_cores.hpp"

namespace wirepress {

extern const Kernel lz4_liblz4;

namespace {

struct Lz4 {
  using Encoder = Vwpr_lz4_enc;
  using Decoder = Vwpr_lz4_dec;
  static constexpr const char* kName = "lz4";
  static constexpr const char* kVariant = "verilator";
  static constexpr size_t kDecoderBeat = 8;
  // High compression is the library's.
  static bool takes(const Args& args) { return args.value[0] <= 2; }
  static const Kernel& portable() { return lz4_liblz4; }
};

}  // namespace

extern const Kernel lz4_rtl;
const Kernel lz4_rtl = rtl::LzCores<Lz4>::kernel();

}  // namespace wirepress
