// SPDX-License-Identifier: Apache-2.0
// Rows of the stencil, compiled for any processor.
#define RTM_LANES 4
#include "stencil_rows.hpp"

namespace rtm {
extern const StepRows portable_rows;
const StepRows portable_rows = step_rows;
}  // namespace rtm
