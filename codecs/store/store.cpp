// SPDX-License-Identifier: Apache-2.0
// store: the bytes as they are. The template for a new codec (docs/adding/codec.md).
#include "base/kernel.hpp"

namespace wirepress {

extern const Codec store_codec;
const Codec store_codec = {
    .name = "store",
    .sentence = "the bytes as they are",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = true,
    .needs_size = false,
    .check = nullptr,
    .bound = [](const Args&, size_t n) { return n; },
};

}  // namespace wirepress
