// SPDX-License-Identifier: Apache-2.0
// Signs bit by bit.
#include "codecs/trits/trits.hpp"

namespace wirepress {
namespace {

struct Ops {
  static uint64_t extract(uint64_t bits, uint64_t mask) {
    uint64_t found = 0;
    for (unsigned i = 0; mask != 0; mask &= mask - 1, ++i)
      found |= (bits >> std::countr_zero(mask) & 1) << i;
    return found;
  }
  static uint64_t deposit(uint64_t bits, uint64_t mask) {
    uint64_t found = 0;
    for (; mask != 0; mask &= mask - 1, bits >>= 1) found |= (bits & 1) << std::countr_zero(mask);
    return found;
  }
};

}  // namespace

extern const Kernel trits_scalar;
const Kernel trits_scalar = Trits<Ops>::kernel("scalar", always_usable);

}  // namespace wirepress
