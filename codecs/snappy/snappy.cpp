// SPDX-License-Identifier: Apache-2.0
// snappy: one raw Snappy stream (spec.md).
#include "base/kernel.hpp"

namespace wirepress {

extern const Codec snappy_codec;
const Codec snappy_codec = {
    .name = "snappy",
    .sentence = "Snappy by libsnappy: fast, no levels",
    .params = {},
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    .bound = [](const Args&, size_t n) { return 32 + n + n / 6; },  // MaxCompressedLength
};

}  // namespace wirepress
