// SPDX-License-Identifier: Apache-2.0
// The reference kernel.
#include "codecs/fp16/fp16.hpp"

namespace wirepress {
namespace {

struct Format : Fp16Layout, PlainSums {
  using Fp16Layout::Fp16Layout;

  void encode(const std::byte* x, size_t n, uint64_t index, std::byte* out) const {
    for (size_t i = 0; i < n; ++i) {
      uint32_t word;
      std::memcpy(&word, x + 4 * i, sizeof(word));
      const uint16_t half = code(word, index + i);
      std::memcpy(out + 2 * i, &half, sizeof(half));
    }
  }

  bool decode(const std::byte* in, size_t n, std::byte* x) const {
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + 2 * i, sizeof(half));
      const uint32_t word = value(half);
      std::memcpy(x + 4 * i, &word, sizeof(word));
    }
    return true;
  }
};

}  // namespace

extern const Kernel fp16_scalar;
const Kernel fp16_scalar = FloatChunks<Format>::kernel("scalar", always_usable);

}  // namespace wirepress
