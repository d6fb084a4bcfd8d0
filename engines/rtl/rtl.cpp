// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of rtl/, simulated by Verilator: what they make and read, and in how many clocks.
#include "base/kernel.hpp"
#include "engines/rtl/simulation.hpp"

namespace wirepress {

extern const Engine rtl_engine;
const Engine rtl_engine = {"rtl", "the FPGA cores of rtl/, simulated clock by clock",
                           [] { return static_cast<const char*>(nullptr); },
                           [] { return rtl::clocks.load(std::memory_order_relaxed); }};

}  // namespace wirepress
