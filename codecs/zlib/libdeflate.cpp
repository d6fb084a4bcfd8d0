// SPDX-License-Identifier: Apache-2.0
#include "base/libdeflate.hpp"

namespace wirepress {
namespace {

constexpr Wrapping kWrapping = {"zlib", libdeflate_zlib_compress, libdeflate_zlib_decompress_ex};

}  // namespace

extern const Kernel zlib_libdeflate;
const Kernel zlib_libdeflate = libdeflate_kernel<kWrapping>();

}  // namespace wirepress
