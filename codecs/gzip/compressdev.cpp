// SPDX-License-Identifier: Apache-2.0
#include <libdeflate.h>

#include <array>
#include <cstring>

#include "engines/compressdev/job.hpp"

namespace wirepress {

extern const Kernel gzip_libdeflate;

// RFC 1952: magic, CM 8, no flags, no time, XFL 0, operating system unknown. The trailer is the
// CRC-32 and the size modulo 2^32, least significant byte first. Members with names or comments go
// to the cores.
struct GzipOnDevice {
  static constexpr auto kAlgorithm = compressdev::Algorithm::kDeflate;
  static constexpr size_t kHeader = 10, kTrailer = 8;
  static constexpr uint8_t kPlain[kHeader] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};

  static const Kernel& cores() { return gzip_libdeflate; }

  static std::array<uint32_t, 2> trailer_of(ConstBytes raw) {
    return {libdeflate_crc32(0, raw.data(), raw.size()), static_cast<uint32_t>(raw.size())};
  }

  static void wrap(int, ConstBytes raw, Bytes code) {
    std::memcpy(code.data(), kPlain, kHeader);
    std::memcpy(code.last(kTrailer).data(), trailer_of(raw).data(), kTrailer);
  }

  static bool is_header(ConstBytes code) { return std::memcmp(code.data(), kPlain, 4) == 0; }

  static bool is_trailer(ConstBytes code, ConstBytes raw) {
    return std::memcmp(code.last(kTrailer).data(), trailer_of(raw).data(), kTrailer) == 0;
  }
};

extern const Kernel gzip_compressdev;
const Kernel gzip_compressdev = compressdev::kernel<GzipOnDevice>();

}  // namespace wirepress
