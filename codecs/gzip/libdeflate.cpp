// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/libdeflate.hpp"

namespace wirepress {

struct GzipWrapping {
  static constexpr const char* name = "gzip";
  static constexpr auto decompress = libdeflate_gzip_decompress_ex;

  static size_t compress(libdeflate_compressor* compressor, int, const void* in, size_t n,
                         void* out, size_t room) {
    return libdeflate_gzip_compress(compressor, in, n, out, room);
  }
};

extern const Kernel gzip_libdeflate;
const Kernel gzip_libdeflate = libdeflate_kernel<GzipWrapping>();

}  // namespace wirepress
