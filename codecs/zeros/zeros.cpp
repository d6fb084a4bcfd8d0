// SPDX-License-Identifier: Apache-2.0
// zeros: a bitmap of the 64-byte lines that are not all zero, and those lines (spec.md).
#include "base/kernel.hpp"

namespace wirepress {

extern const Codec zeros_codec;
const Codec zeros_codec = {
    .name = "zeros",
    .sentence = "leaves out 64-byte lines of zeros, at the speed of a copy",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .check = nullptr,
    .bound = [](const Args&, size_t n) { return n + ((n + 63) / 64 + 7) / 8; },
};

}  // namespace wirepress
