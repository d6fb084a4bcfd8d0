// SPDX-License-Identifier: Apache-2.0
// LZ4 blocks on a device: BlueField-3 and Blackwell expand them, and nothing compresses them.
#include "engines/compressdev/job.hpp"

namespace wirepress {

extern const Kernel lz4_liblz4;

struct Lz4OnDevice {
  static constexpr auto kAlgorithm = compressdev::Algorithm::kLz4;
  static constexpr size_t kHeader = 0, kTrailer = 0;
  static const Kernel& cores() { return lz4_liblz4; }
  static void wrap(int, ConstBytes, Bytes) {}
  static bool is_header(ConstBytes) { return true; }
  static bool is_trailer(ConstBytes, ConstBytes) { return true; }
};

extern const Kernel lz4_compressdev;
const Kernel lz4_compressdev = compressdev::kernel<Lz4OnDevice>();

}  // namespace wirepress
