// SPDX-License-Identifier: Apache-2.0
// In the place of rtl.cpp where the library was built without Verilator.
#include "base/kernel.hpp"

namespace wirepress {

extern const Engine rtl_engine;
const Engine rtl_engine = {
    "rtl", "the FPGA cores of rtl/, simulated clock by clock",
    [] { return "this build has none: WPR_RTL was off, or Verilator was not found"; }};

}  // namespace wirepress
