// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of bx (rtl/bx), simulated: float32.
#include "Vwpr_bx_dec.h"
#include "Vwpr_bx_enc.h"
#include "codecs/bx/bx.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel bx_scalar;

namespace {

using namespace bx;

struct Bx {
  using Encoder = Vwpr_bx_enc;
  using Decoder = Vwpr_bx_dec;
  static constexpr const char* kName = "bx";
  static const Kernel& portable() { return bx_scalar; }
  static bool takes(const Args& args) {
    return args.dtype == DType::kFloat32 || args.dtype == DType::kBytes;
  }
  static void set(const Args& args, Encoder& encoder) {
    const Setting setting = setting_of(args);
    encoder.cfg_m_i = static_cast<uint8_t>(setting.m);
    encoder.cfg_nearest_i = setting.round == kNearest;
    encoder.cfg_midpoint_i = setting.round == kMidpoint;
    encoder.cfg_flush_i = setting.flush;
  }
  static void set(const Args& args, Decoder& decoder) {
    const Setting setting = setting_of(args);
    decoder.cfg_m_i = static_cast<uint8_t>(setting.m);
    decoder.cfg_midpoint_i = setting.round == kMidpoint;
  }
};

}  // namespace

extern const Kernel bx_rtl;
const Kernel bx_rtl = rtl::FloatCores<Bx>::kernel();

}  // namespace wirepress
