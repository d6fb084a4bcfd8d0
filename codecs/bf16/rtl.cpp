// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of bf16 (rtl/cast), simulated. They do not round at random.
#include "Vwpr_cast_dec.h"
#include "Vwpr_cast_enc.h"
#include "codecs/bf16/bf16.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel bf16_scalar;

namespace {

struct Cast : Bf16Layout {
  using Encoder = Vwpr_cast_enc;
  using Decoder = Vwpr_cast_dec;
  static const Kernel& portable() { return bf16_scalar; }
  static bool takes(const Args& args) { return !Bf16Layout(args).stochastic; }
  static void set(const Args& args, Encoder& encoder) {
    encoder.cfg_half_i = false;
    encoder.cfg_saturate_i = Bf16Layout(args).saturate;
  }
  static void set(const Args&, Decoder& decoder) { decoder.cfg_half_i = false; }
  static size_t code_size(const Args&, size_t n) { return Bf16Layout::code_size(n); }
};

}  // namespace

extern const Kernel bf16_rtl;
const Kernel bf16_rtl = rtl::FloatCores<Cast>::kernel();

}  // namespace wirepress
