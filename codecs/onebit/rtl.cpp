// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of onebit (rtl/onebit), simulated.
#include "Vwpr_onebit_dec.h"
#include "Vwpr_onebit_enc.h"
#include "codecs/onebit/onebit.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel onebit_scalar;

namespace {

struct Onebit {
  using Encoder = Vwpr_onebit_enc;
  using Decoder = Vwpr_onebit_dec;
  static constexpr const char* kName = onebit::kName;
  static const Kernel& portable() { return onebit_scalar; }
  static bool takes(const Args&) { return true; }
  static void set(const Args& args, auto& core) {
    core.cfg_block_i = static_cast<uint8_t>(args.value[onebit::kBlock]);
  }
  static size_t code_size(const Args& args, size_t n) {
    return chunks::code_size(chunks::PlaneLayout{onebit::values(args), onebit::kHeadSize, 1},
                             4 * n);
  }
};

}  // namespace

extern const Kernel onebit_rtl;
const Kernel onebit_rtl = rtl::FloatCores<Onebit>::kernel();

}  // namespace wirepress
