// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of tbq (rtl/tbq), simulated. They know tau as it is (of=one), not as a multiple of
// a mean, and code without feedback.
#include "Vwpr_tbq_dec.h"
#include "Vwpr_tbq_enc.h"
#include "codecs/tbq/tbq.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel tbq_scalar;

namespace {

struct Tbq {
  using Encoder = Vwpr_tbq_enc;
  using Decoder = Vwpr_tbq_dec;
  static constexpr const char* kName = "tbq";
  static constexpr int kTauShift = 8;  // lower bits of tau's word, which are 0
  static const Kernel& portable() { return tbq_scalar; }
  static bool takes(const Args& args) { return args.value[tbq::kOf] == tbq::kOne; }
  static void set(const Args& args, auto& core) {
    core.cfg_tau_i = chunks::word_of(tbq::Rule(args).tau) >> kTauShift;
  }
};

}  // namespace

extern const Kernel tbq_rtl;
const Kernel tbq_rtl = rtl::FloatCores<Tbq>::kernel();

}  // namespace wirepress
