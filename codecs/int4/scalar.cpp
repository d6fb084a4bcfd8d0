// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/int4/int4.hpp"

namespace wirepress {
namespace {

struct Format : Int4Layout, PlainSums {
  using Int4Layout::Int4Layout;

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    uint32_t largest = 0;
    for (size_t i = 0; i < n; ++i)
      largest = std::max(largest, std::bit_cast<uint32_t>(load(x, i)) & ~kFloatSign);
    const uint32_t scale = scale_of(largest);
    std::memcpy(out, &scale, sizeof(scale));
    out += kHeadSize;
    const float inverse = 1.0f / std::bit_cast<float>(scale);
    const auto nibble = [&](size_t i) {
      const bool zero = i >= n || codes_are_zero(scale);
      return static_cast<uint32_t>(zero ? 0 : code(load(x, i), inverse, index + i)) & 15;
    };
    for (size_t i = 0; i < n; i += 2)
      out[i / 2] = static_cast<std::byte>(nibble(i) | nibble(i + 1) << 4);
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    uint32_t scale;
    std::memcpy(&scale, in, sizeof(scale));
    in += kHeadSize;
    const size_t size = (n + 1) / 2;
    if (!scale_is_valid(scale) || (codes_are_zero(scale) && !is_zero(in, size))) return false;
    if (n % 2 != 0 && (in[size - 1] >> 4) != std::byte{0}) return false;
    for (size_t i = 0; i < n; ++i) {
      const int nibble = static_cast<int>(in[i / 2] >> (i % 2 * 4)) & 15;
      const int code = nibble > kLevels ? nibble - 16 : nibble;
      if (code == kNoCode) return false;
      const float unit = std::bit_cast<float>(scale);
      store(x, i, codes_are_zero(scale) ? unit : static_cast<float>(code) * unit);
    }
    return true;
  }
};

}  // namespace

extern const Kernel int4_scalar;
const Kernel int4_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
