// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "codecs/zeros/zeros.hpp"

namespace wirepress {
namespace {

struct Line {
  static bool is_zero(const std::byte* line) {
    const __m256i v =
        _mm256_or_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(line)),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + 32)));
    return _mm256_testz_si256(v, v) != 0;
  }
};

}  // namespace

extern const Kernel zeros_avx2;
const Kernel zeros_avx2 = Zeros<LineOps<Line>>::kernel("avx2", has_avx2);

}  // namespace wirepress
