// SPDX-License-Identifier: Apache-2.0
#include "base/libdeflate.hpp"

namespace wirepress {
namespace {

constexpr Wrapping kWrapping = {"deflate", libdeflate_deflate_compress,
                                libdeflate_deflate_decompress_ex};

}  // namespace

extern const Kernel deflate_libdeflate;
const Kernel deflate_libdeflate = libdeflate_kernel<kWrapping>();

}  // namespace wirepress
