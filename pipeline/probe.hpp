// SPDX-License-Identifier: Apache-2.0
// A cheap look at data before codecs work on them.
#pragma once

#include "base/memory.hpp"

namespace wirepress {

// Whether a sample of the bytes looks like noise that no byte codec shrinks: its order-0 entropy is
// near 8 bits. Costs a few microseconds whatever the size. Blind to repetitions farther apart than
// the sample; the option "probe" turns it off.
bool looks_incompressible(ConstBytes bytes);
// The same of bytes on a device, of which only the sample comes to the cores.
Status looks_incompressible(const Place& place, ConstBytes bytes, bool* answer);

}  // namespace wirepress
