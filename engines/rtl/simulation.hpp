// SPDX-License-Identifier: Apache-2.0
// Counts and settings of simulated cores (core.hpp) for code that does not need the simulator.
#pragma once

#include <atomic>
#include <cstdint>

namespace wirepress::rtl {

// Clocks that all cores of this process have taken.
inline std::atomic<uint64_t> clocks{0};

// How often either side of a core pauses, at random: before a beat, the source with probability
// source / 256; in each clock, the sink with sink / 256. Under 256.
struct Pauses {
  unsigned source = 0;
  unsigned sink = 0;
  uint64_t seed = 1;  // not 0
};

// Those of the cores that are made from now on. For tests.
inline Pauses pauses;

}  // namespace wirepress::rtl
