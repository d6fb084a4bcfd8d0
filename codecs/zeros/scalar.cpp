// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "codecs/zeros/zeros.hpp"

namespace wirepress {
namespace {

struct Line {
  static bool is_zero(const std::byte* line) {
    std::array<uint64_t, kLine / 8> words;
    std::memcpy(words.data(), line, kLine);
    return (words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] |
            words[7]) == 0;
  }
};

}  // namespace

extern const Kernel zeros_scalar;
const Kernel zeros_scalar = Zeros<LineOps<Line>>::kernel("scalar", always_usable);

}  // namespace wirepress
