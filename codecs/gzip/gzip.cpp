// SPDX-License-Identifier: Apache-2.0
// gzip: one gzip member, RFC 1952 (spec.md).
#include "codecs/common/libdeflate.hpp"

namespace wirepress {

extern const Codec gzip_codec;
const Codec gzip_codec = {
    .name = "gzip",
    .sentence = "gzip by libdeflate: DEFLATE with a CRC-32, a .gz member",
    .params = kLibdeflateParams,
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    .bound =
        [](const Args&, size_t n) {
          return libdeflate_bound(n, 18);
        },  // 10 of header, 8 of CRC-32 and size
};

}  // namespace wirepress
