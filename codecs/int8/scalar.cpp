// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/int8/int8.hpp"

namespace wirepress {
namespace {

struct Format : Int8Layout, PlainSums {
  using Int8Layout::Int8Layout;

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; ++i)
      largest = std::max(largest, std::bit_cast<uint32_t>(load(x, i)) & ~kFloatSign);
    const uint32_t scale = scale_of(largest);
    std::memcpy(out, &scale, sizeof(scale));
    out += kHeadSize;
    const float inverse = 1.0f / std::bit_cast<float>(scale);
    for (size_t i = 0; i < n; ++i)
      out[i] = codes_are_zero(scale) ? std::byte{0}
                                     : static_cast<std::byte>(code(load(x, i), inverse, index + i));
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    uint32_t scale;
    std::memcpy(&scale, in, sizeof(scale));
    in += kHeadSize;
    if (!scale_is_valid(scale) || (codes_are_zero(scale) && !is_zero(in, n))) return false;
    for (size_t i = 0; i < n; ++i) {
      const int code = static_cast<int8_t>(in[i]);
      if (code == kNoCode) return false;
      const float unit = std::bit_cast<float>(scale);
      store(x, i, codes_are_zero(scale) ? unit : static_cast<float>(code) * unit);
    }
    return true;
  }
};

}  // namespace

extern const Kernel int8_scalar;
const Kernel int8_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
