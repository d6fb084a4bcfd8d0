// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of terngrad (rtl/terngrad), simulated. They do not clip.
#include "Vwpr_terngrad_dec.h"
#include "Vwpr_terngrad_enc.h"
#include "codecs/terngrad/terngrad.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel terngrad_scalar;

namespace {

struct Terngrad {
  using Encoder = Vwpr_terngrad_enc;
  using Decoder = Vwpr_terngrad_dec;
  static constexpr const char* kName = terngrad::kName;
  static const Kernel& portable() { return terngrad_scalar; }
  static bool takes(const Args& args) { return terngrad::clip_of(args) == 0; }
  static void set(const Args&, auto&) {}
  static void begin(const Args& args, Encoder& encoder) {
    encoder.cfg_seed_i = args.seed;
    encoder.cfg_first_i = args.first;
  }
  static size_t code_size(const Args&, size_t n) {
    return chunks::code_size(
        chunks::PlaneLayout{terngrad::kValues, terngrad::kHeadSize, terngrad::kPlanes}, 4 * n);
  }
};

}  // namespace

extern const Kernel terngrad_rtl;
const Kernel terngrad_rtl = rtl::FloatCores<Terngrad>::kernel();

}  // namespace wirepress
