// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of int8 (rtl/int8), simulated. They do not round at random.
#include "Vwpr_int8_dec.h"
#include "Vwpr_int8_enc.h"
#include "codecs/int8/int8.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel int8_scalar;

namespace {

struct Int8 : Int8Layout {
  using Encoder = Vwpr_int8_enc;
  using Decoder = Vwpr_int8_dec;
  static const Kernel& portable() { return int8_scalar; }
  static bool takes(const Args& args) { return !Int8Layout(args).stochastic; }
  static void set(const Args& args, auto& core) {
    core.cfg_block_i = static_cast<uint8_t>(args.value[kBlock]);
  }
  static size_t code_size(const Args& args, size_t n) {
    const size_t block = Int8Layout(args).block;
    return n + (n + block - 1) / block * kHeadSize;
  }
};

}  // namespace

extern const Kernel int8_rtl;
const Kernel int8_rtl = rtl::FloatCores<Int8>::kernel();

}  // namespace wirepress
