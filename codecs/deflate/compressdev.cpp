// SPDX-License-Identifier: Apache-2.0
#include "engines/compressdev/job.hpp"

namespace wirepress {

extern const Kernel deflate_libdeflate;

struct DeflateOnDevice {
  static constexpr auto kAlgorithm = compressdev::Algorithm::kDeflate;
  static constexpr size_t kHeader = 0, kTrailer = 0;
  static const Kernel& cores() { return deflate_libdeflate; }
  static void wrap(int, ConstBytes, Bytes) {}
  static bool is_header(ConstBytes) { return true; }
  static bool is_trailer(ConstBytes, ConstBytes) { return true; }
};

extern const Kernel deflate_compressdev;
const Kernel deflate_compressdev = compressdev::kernel<DeflateOnDevice>();

}  // namespace wirepress
