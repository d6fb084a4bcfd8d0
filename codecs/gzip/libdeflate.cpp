// SPDX-License-Identifier: Apache-2.0
#include "base/libdeflate.hpp"

namespace wirepress {
namespace {

constexpr Wrapping kWrapping = {"gzip", libdeflate_gzip_compress, libdeflate_gzip_decompress_ex};

}  // namespace

extern const Kernel gzip_libdeflate;
const Kernel gzip_libdeflate = libdeflate_kernel<kWrapping>();

}  // namespace wirepress
