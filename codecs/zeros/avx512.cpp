// SPDX-License-Identifier: Apache-2.0
// A line is a register. Lines are spread without branches: a load that is masked off gives the
// zeros and touches no memory.
#include "codecs/common/simd/avx512.hpp"

#include "codecs/zeros/zeros.hpp"

namespace wirepress {
namespace {

struct Ops {
  static uint64_t lines(const std::byte* src) {
    uint64_t mask = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      const __m512i v = _mm512_loadu_si512(src + i * kLine);
      mask |= uint64_t{_mm512_test_epi32_mask(v, v) != 0} << i;
    }
    return mask;
  }
  static bool spread(uint64_t mask, const std::byte* from, std::byte* dst) {
    uint64_t found = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      const uint64_t kept = mask >> i & 1;
      const __m512i v = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(0 - kept), from);
      _mm512_storeu_si512(dst + i * kLine, v);
      found |= uint64_t{_mm512_test_epi32_mask(v, v) != 0} << i;
      from += kept * kLine;
    }
    return found == mask;
  }
};

}  // namespace

extern const Kernel zeros_avx512;
const Kernel zeros_avx512 = Zeros<Ops>::kernel("avx512", has_avx512);

}  // namespace wirepress
