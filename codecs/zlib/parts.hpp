// SPDX-License-Identifier: Apache-2.0
// zlib in parts (RFC 1950): what stands around the DEFLATE stream, whatever makes that.
#pragma once

#include <libdeflate.h>

#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::zlib {

inline constexpr size_t kHeaderSize = 2, kTrailerSize = 4;
inline constexpr unsigned kDeflate32K = 0x78;  // CM 8, window of 2^15 bytes
inline constexpr unsigned kPresetDictionary = 0x20;

// CMF and FLG, most significant byte first: a multiple of 31. FLEVEL only informs.
inline unsigned header_of(int level) {
  const unsigned hint = level < 2 ? 0 : level < 6 ? 1 : level < 8 ? 2 : 3;
  const unsigned header = kDeflate32K << 8 | hint << 6;
  return header + 31 - header % 31;
}

inline uint32_t trailer_of(ConstBytes raw) {
  return __builtin_bswap32(libdeflate_adler32(1, raw.data(), raw.size()));
}

// Writes both ends of `code`, whose middle is the stream.
inline void wrap(int level, ConstBytes raw, Bytes code) {
  const unsigned header = header_of(level);
  code[0] = static_cast<std::byte>(header >> 8);
  code[1] = static_cast<std::byte>(header);
  const uint32_t trailer = trailer_of(raw);
  std::memcpy(code.last(kTrailerSize).data(), &trailer, kTrailerSize);
}

inline bool is_header(ConstBytes code) {
  const unsigned cmf = std::to_integer<unsigned>(code[0]), flg = std::to_integer<unsigned>(code[1]);
  const bool deflate = (cmf & 15) == 8 && cmf >> 4 <= 7;
  return deflate && (cmf << 8 | flg) % 31 == 0 && (flg & kPresetDictionary) == 0;
}

inline bool is_trailer(ConstBytes code, ConstBytes raw) {
  const uint32_t trailer = trailer_of(raw);
  return std::memcmp(code.last(kTrailerSize).data(), &trailer, kTrailerSize) == 0;
}

}  // namespace wirepress::zlib
