// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of fp16 (rtl/cast), simulated. They do not round at random.
#include "Vwpr_cast_dec.h"
#include "Vwpr_cast_enc.h"
#include "codecs/fp16/fp16.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel fp16_scalar;

namespace {

struct Cast : Fp16Layout {
  using Encoder = Vwpr_cast_enc;
  using Decoder = Vwpr_cast_dec;
  static const Kernel& portable() { return fp16_scalar; }
  static bool takes(const Args& args) { return !Fp16Layout(args).stochastic; }
  static void set(const Args& args, Encoder& encoder) {
    encoder.cfg_half_i = true;
    encoder.cfg_saturate_i = Fp16Layout(args).saturate;
  }
  static void set(const Args&, Decoder& decoder) { decoder.cfg_half_i = true; }
  static size_t code_size(const Args&, size_t n) { return Fp16Layout::code_size(n); }
};

}  // namespace

extern const Kernel fp16_rtl;
const Kernel fp16_rtl = rtl::FloatCores<Cast>::kernel();

}  // namespace wirepress
