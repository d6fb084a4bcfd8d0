// SPDX-License-Identifier: Apache-2.0
// deflate: one raw DEFLATE stream, RFC 1951 (spec.md).
#include "codecs/common/libdeflate.hpp"

namespace wirepress {

extern const Codec deflate_codec;
const Codec deflate_codec = {
    .name = "deflate",
    .sentence = "DEFLATE by libdeflate: what most hardware engines speak",
    .params = kLibdeflateParams,
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    .bound = [](const Args&, size_t n) { return libdeflate_bound(n, 0); },
};

}  // namespace wirepress
