// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "codecs/zeros/zeros.hpp"

namespace wirepress {
namespace {

struct Line {
  static bool is_zero(const std::byte* line) {
    const auto* p = reinterpret_cast<const uint8_t*>(line);
    const uint8x16_t v = vorrq_u8(vorrq_u8(vld1q_u8(p), vld1q_u8(p + 16)),
                                  vorrq_u8(vld1q_u8(p + 32), vld1q_u8(p + 48)));
    return vmaxvq_u8(v) == 0;
  }
};

}  // namespace

extern const Kernel zeros_neon;
const Kernel zeros_neon = Zeros<LineOps<Line>>::kernel("neon", always_usable);

}  // namespace wirepress
