// SPDX-License-Identifier: Apache-2.0
// XXH3, as frames use it: the low half of the 64-bit hash.
#pragma once

#include "base/kernel.hpp"

namespace wirepress {

uint32_t short_hash(ConstBytes bytes, uint64_t seed);

}  // namespace wirepress
