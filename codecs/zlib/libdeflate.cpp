// SPDX-License-Identifier: Apache-2.0
// zlib in parts: header and trailer are made here, and the DEFLATE body between them is a call of
// its own. An engine that makes bodies only (a DPU's) replaces that call and nothing else.
#include "codecs/common/libdeflate.hpp"

#include <cstring>

namespace wirepress {
namespace {

constexpr size_t kHeaderSize = 2, kTrailerSize = 4;  // RFC 1950
constexpr unsigned kDeflate32K = 0x78;               // CM 8, window of 2^15 bytes
constexpr unsigned kPresetDictionary = 0x20;

// CMF and FLG, most significant byte first: a multiple of 31. FLEVEL only informs.
unsigned header_of(int level) {
  const unsigned hint = level < 2 ? 0 : level < 6 ? 1 : level < 8 ? 2 : 3;
  const unsigned header = kDeflate32K << 8 | hint << 6;
  return header + 31 - header % 31;
}

uint32_t swapped(uint32_t word) { return __builtin_bswap32(word); }

}  // namespace

struct ZlibWrapping {
  static constexpr const char* name = "zlib";

  static size_t compress(libdeflate_compressor* compressor, int level, const void* in, size_t n,
                         void* out, size_t room) {
    if (room < kHeaderSize + kTrailerSize) return 0;
    auto* to = static_cast<std::byte*>(out);
    const size_t body = libdeflate_deflate_compress(compressor, in, n, to + kHeaderSize,
                                                    room - kHeaderSize - kTrailerSize);
    if (body == 0) return 0;
    const unsigned header = header_of(level);
    to[0] = static_cast<std::byte>(header >> 8);
    to[1] = static_cast<std::byte>(header);
    const uint32_t trailer = swapped(libdeflate_adler32(1, in, n));
    std::memcpy(to + kHeaderSize + body, &trailer, kTrailerSize);
    return kHeaderSize + body + kTrailerSize;
  }

  static libdeflate_result decompress(libdeflate_decompressor* decompressor, const void* in,
                                      size_t n, void* out, size_t room, size_t* taken,
                                      size_t* size) {
    if (n < kHeaderSize + kTrailerSize) return LIBDEFLATE_BAD_DATA;
    const auto* from = static_cast<const std::byte*>(in);
    const unsigned cmf = std::to_integer<unsigned>(from[0]),
                   flg = std::to_integer<unsigned>(from[1]);
    const bool deflate = (cmf & 15) == 8 && cmf >> 4 <= 7;
    if (!deflate || (cmf << 8 | flg) % 31 != 0 || (flg & kPresetDictionary) != 0)
      return LIBDEFLATE_BAD_DATA;
    size_t body = 0;
    const libdeflate_result result = libdeflate_deflate_decompress_ex(
        decompressor, from + kHeaderSize, n - kHeaderSize - kTrailerSize, out, room, &body, size);
    if (result != LIBDEFLATE_SUCCESS) return result;
    uint32_t trailer;
    std::memcpy(&trailer, from + kHeaderSize + body, kTrailerSize);
    if (swapped(trailer) != libdeflate_adler32(1, out, *size)) return LIBDEFLATE_BAD_DATA;
    *taken = kHeaderSize + body + kTrailerSize;
    return result;
  }
};

extern const Kernel zlib_libdeflate;
const Kernel zlib_libdeflate = libdeflate_kernel<ZlibWrapping>();

}  // namespace wirepress
