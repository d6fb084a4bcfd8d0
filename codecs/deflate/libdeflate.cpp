// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/libdeflate.hpp"

namespace wirepress {

struct DeflateWrapping {
  static constexpr const char* name = "deflate";
  static constexpr auto decompress = libdeflate_deflate_decompress_ex;

  static size_t compress(libdeflate_compressor* compressor, int, const void* in, size_t n,
                         void* out, size_t room) {
    return libdeflate_deflate_compress(compressor, in, n, out, room);
  }
};

extern const Kernel deflate_libdeflate;
const Kernel deflate_libdeflate = libdeflate_kernel<DeflateWrapping>();

}  // namespace wirepress
