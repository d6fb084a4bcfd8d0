// SPDX-License-Identifier: Apache-2.0
// Signs by pext and pdep (BMI2).
#include <immintrin.h>

#include "codecs/trits/trits.hpp"

namespace wirepress {
namespace {

struct Ops {
  static uint64_t extract(uint64_t bits, uint64_t mask) { return _pext_u64(bits, mask); }
  static uint64_t deposit(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }
};

}  // namespace

extern const Kernel trits_avx2;
const Kernel trits_avx2 = Trits<Ops>::kernel("avx2", has_avx2);

}  // namespace wirepress
