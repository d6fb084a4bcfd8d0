// SPDX-License-Identifier: Apache-2.0
// Rows of the stencil, compiled for AVX-512.
#define RTM_LANES 16
#include "stencil_rows.hpp"

namespace rtm {
extern const StepRows avx512_rows;
const StepRows avx512_rows = step_rows;
}  // namespace rtm
