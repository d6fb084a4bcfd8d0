// SPDX-License-Identifier: Apache-2.0
#include "stencil.hpp"

namespace rtm {

#ifdef RTM_AVX512
extern const StepRows avx512_rows;
#endif
#ifdef RTM_AVX2
extern const StepRows avx2_rows;
#endif
extern const StepRows portable_rows;

Stencil best_stencil() {
#ifdef RTM_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi2"))
    return {"avx512", avx512_rows};
#endif
#ifdef RTM_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", avx2_rows};
#endif
  return {"portable", portable_rows};
}

}  // namespace rtm
