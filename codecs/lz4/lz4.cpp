// SPDX-License-Identifier: Apache-2.0
// lz4: one raw LZ4 block, as liblz4 writes it (spec.md).
#include "base/kernel.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"level", -65, 12, 1, nullptr,
     "3 to 12: high compression; 0 to 2: fast; below 0: faster, the acceleration with its sign "
     "turned"},
};

}  // namespace

extern const Codec lz4_codec;
const Codec lz4_codec = {
    .name = "lz4",
    .sentence = "LZ4 block by liblz4: fast, and fastest to expand",
    .params = kParams,
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    // LZ4_compressBound without its limit of an int: kernels refuse what is larger.
    .bound = [](const Args&, size_t n) { return n + n / 255 + 16; },
};

}  // namespace wirepress
