// SPDX-License-Identifier: Apache-2.0
#include "codecs/zlib/parts.hpp"
#include "engines/compressdev/job.hpp"

namespace wirepress {

extern const Kernel zlib_libdeflate;

struct ZlibOnDevice {
  static constexpr auto kAlgorithm = compressdev::Algorithm::kDeflate;
  static constexpr size_t kHeader = zlib::kHeaderSize, kTrailer = zlib::kTrailerSize;
  static constexpr auto wrap = zlib::wrap;
  static constexpr auto is_header = zlib::is_header;
  static constexpr auto is_trailer = zlib::is_trailer;
  static const Kernel& cores() { return zlib_libdeflate; }
};

extern const Kernel zlib_compressdev;
const Kernel zlib_compressdev = compressdev::kernel<ZlibOnDevice>();

}  // namespace wirepress
