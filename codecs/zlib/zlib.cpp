// SPDX-License-Identifier: Apache-2.0
// zlib: one zlib stream, RFC 1950 (spec.md).
#include "codecs/common/libdeflate.hpp"

namespace wirepress {

extern const Codec zlib_codec;
const Codec zlib_codec = {
    .name = "zlib",
    .sentence = "zlib by libdeflate: DEFLATE with an Adler-32",
    .params = kLibdeflateParams,
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    .bound = [](const Args&,
                size_t n) { return libdeflate_bound(n, 6); },  // 2 of header, 4 of Adler-32
};

}  // namespace wirepress
