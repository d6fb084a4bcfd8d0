// SPDX-License-Identifier: Apache-2.0
// zstd: one stock Zstandard frame per block (spec.md).
#include "base/kernel.hpp"

namespace wirepress {
namespace {

constexpr Param kParams[] = {
    {"level", -50, 22, 1, nullptr, "-50 (fastest) to 22 (smallest); 0 is libzstd's own default, 3"},
};

}  // namespace

extern const Codec zstd_codec;
const Codec zstd_codec = {
    .name = "zstd",
    .sentence = "Zstandard by libzstd: from fast to small",
    .params = kParams,
    .lossless = true,
    .exact_encode = false,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    // ZSTD_COMPRESSBOUND: 1/256, and up to 64 bytes more below 128 KiB.
    .bound =
        [](const Args&, size_t n) {
          constexpr size_t kSmall = 128 << 10;
          return n + (n >> 8) + (n < kSmall ? (kSmall - n) >> 11 : 0);
        },
};

}  // namespace wirepress
