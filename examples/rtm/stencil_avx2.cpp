// SPDX-License-Identifier: Apache-2.0
// Rows of the stencil, compiled for AVX2.
#define RTM_LANES 8
#include "stencil_rows.hpp"

namespace rtm {
extern const StepRows avx2_rows;
const StepRows avx2_rows = step_rows;
}  // namespace rtm
