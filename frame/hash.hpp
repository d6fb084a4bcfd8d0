// SPDX-License-Identifier: Apache-2.0
// XXH3 of 64 bits; frames use its low half.
#pragma once

#include "base/kernel.hpp"

namespace wirepress {

uint64_t long_hash(ConstBytes bytes, uint64_t seed);
uint32_t short_hash(ConstBytes bytes, uint64_t seed);

}  // namespace wirepress
