// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/bf16/bf16.hpp"

namespace wirepress {
namespace {

struct Format : Bf16Layout, PlainSums {
  using Bf16Layout::Bf16Layout;

  template <bool kStochastic, bool kSaturate>
  uint16_t code(uint32_t word, uint64_t index) const {
    const uint32_t sign = word & kFloatSign;
    uint32_t size = word & ~kFloatSign;
    if (size > kFloatInfinity) return kNan >> 16;
    if (kSaturate && size < kFloatInfinity) size = std::min(size, kLargest);
    // Adding to the word carries from fraction to exponent, up to infinity and not beyond.
    const uint32_t up = kStochastic ? random_bits(seed, index) >> 16 : 0x7FFF + (size >> 16 & 1);
    return static_cast<uint16_t>((sign | (size + up)) >> 16);
  }

  template <bool kStochastic, bool kSaturate>
  void encode_all(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    for (size_t i = 0; i < n; ++i) {
      uint32_t word;
      std::memcpy(&word, x + 4 * i, sizeof(word));
      const uint16_t half = code<kStochastic, kSaturate>(word, index + i);
      std::memcpy(out + 2 * i, &half, sizeof(half));
    }
  }

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    with_settings([&]<bool kStochastic, bool kSaturate>() {
      encode_all<kStochastic, kSaturate>(x, n, index, out);
    });
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + 2 * i, sizeof(half));
      const uint32_t word = uint32_t{half} << 16;
      std::memcpy(x + 4 * i, &word, sizeof(word));
    }
    return true;
  }
};

}  // namespace

extern const Kernel bf16_scalar;
const Kernel bf16_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
