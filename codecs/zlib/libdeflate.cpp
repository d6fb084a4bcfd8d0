// SPDX-License-Identifier: Apache-2.0
#include "codecs/common/libdeflate.hpp"

#include "codecs/zlib/parts.hpp"

namespace wirepress {

using namespace zlib;

struct ZlibWrapping {
  static constexpr const char* name = "zlib";

  static size_t compress(libdeflate_compressor* compressor, int level, const void* in, size_t n,
                         void* out, size_t room) {
    if (room < kHeaderSize + kTrailerSize) return 0;
    auto* to = static_cast<std::byte*>(out);
    const size_t body = libdeflate_deflate_compress(compressor, in, n, to + kHeaderSize,
                                                    room - kHeaderSize - kTrailerSize);
    if (body == 0) return 0;
    const size_t size = kHeaderSize + body + kTrailerSize;
    wrap(level, {static_cast<const std::byte*>(in), n}, {to, size});
    return size;
  }

  static libdeflate_result decompress(libdeflate_decompressor* decompressor, const void* in,
                                      size_t n, void* out, size_t room, size_t* taken,
                                      size_t* size) {
    if (n < kHeaderSize + kTrailerSize) return LIBDEFLATE_BAD_DATA;
    const auto* from = static_cast<const std::byte*>(in);
    if (!is_header({from, n})) return LIBDEFLATE_BAD_DATA;
    size_t body = 0;
    const libdeflate_result result = libdeflate_deflate_decompress_ex(
        decompressor, from + kHeaderSize, n - kHeaderSize - kTrailerSize, out, room, &body, size);
    if (result != LIBDEFLATE_SUCCESS) return result;
    *taken = kHeaderSize + body + kTrailerSize;
    if (!is_trailer({from, *taken}, {static_cast<std::byte*>(out), *size}))
      return LIBDEFLATE_BAD_DATA;
    return result;
  }
};

extern const Kernel zlib_libdeflate;
const Kernel zlib_libdeflate = libdeflate_kernel<ZlibWrapping>();

}  // namespace wirepress
