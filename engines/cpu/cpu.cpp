// SPDX-License-Identifier: Apache-2.0
// The engine every machine has: kernels run on the calling thread or the pipeline's pool.
#include "base/kernel.hpp"

namespace wirepress {

extern const Engine cpu_engine;
const Engine cpu_engine = {"cpu", "the processor's cores, on the pipeline's thread pool",
                           [] { return static_cast<const char*>(nullptr); }};

}  // namespace wirepress
