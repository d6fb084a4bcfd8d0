// SPDX-License-Identifier: Apache-2.0
// The scan of codecs/common/sparse/sparse.hpp for aarch64: 64 values with one branch, hits taken
// one by one.
#pragma once

#include <arm_neon.h>

#include <cstring>

#include "codecs/common/sparse/scalar.hpp"
#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::sparse {
namespace {

struct Neon {
  static constexpr size_t kLanes = 4;

  template <bool kFeedback>
  static size_t run(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                    uint32_t threshold, Keys* keys) {
    const uint32x4_t magnitude = vdupq_n_u32(~kSign);
    size_t i = begin;
    for (; i + kGroup <= n && keys->count + kGroup <= keys->room; i += kGroup) {
      uint32x4_t most[4] = {};
      for (size_t v = 0; v < kGroup / kLanes; ++v) {
        const size_t at = 4 * (i + v * kLanes);
        uint32x4_t word = load(src + at);
        if (kFeedback) {
          const float32x4_t e = vreinterpretq_f32_u32(load(residual + at));
          word = vreinterpretq_u32_f32(vaddq_f32(vreinterpretq_f32_u32(word), e));
          vst1q_u8(reinterpret_cast<uint8_t*>(residual + at), vreinterpretq_u8_u32(word));
        }
        most[v % 4] = vmaxq_u32(most[v % 4], vandq_u32(word, magnitude));
      }
      const uint32x4_t all = vmaxq_u32(vmaxq_u32(most[0], most[1]), vmaxq_u32(most[2], most[3]));
      if (vmaxvq_u32(all) < threshold) [[likely]]
        continue;
      uint32_t word[kGroup];
      std::memcpy(word, (kFeedback ? residual : src) + 4 * i, sizeof(word));
      Scalar::take<kFeedback>(word, residual, i, kGroup, threshold, keys);
    }
    return Scalar::run<kFeedback>(src, residual, i, n, threshold, keys);
  }

  static uint32x4_t load(const std::byte* from) {
    return vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from)));
  }
};

}  // namespace
}  // namespace wirepress::sparse
