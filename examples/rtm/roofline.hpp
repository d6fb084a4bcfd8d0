// SPDX-License-Identifier: Apache-2.0
// What the memory lets the stencil do, and what it does.
#pragma once

#include "wave.hpp"

namespace rtm {

struct Roofline {
  double copy_rate = 0;    // bytes a second that memcpy on all workers reads and writes, together
  double stream_rate = 0;  // the same of a loop that reads three arrays and writes one
  double points_rate = 0;  // points a second of the stencil, without storage
  double limit() const { return copy_rate / kBytesPerPoint; }  // points a second
  double reached() const { return points_rate / limit(); }
};

// Turns of all three, for at least so many seconds; the best of each counts.
Roofline measure_roofline(Wave& wave, Team& team, double seconds);

}  // namespace rtm
