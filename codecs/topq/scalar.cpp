// SPDX-License-Identifier: Apache-2.0
// The search for the largest values in plain C++.
#include "codecs/topq/topq.hpp"

namespace wirepress {
namespace {

struct Plain {
  using Sums = PlainSums;

  static uint32_t magnitude(const std::byte* x, size_t i) {
    uint32_t word;
    std::memcpy(&word, x + 4 * i, sizeof(word));
    return word & ~kFloatSign;
  }

  static uint32_t find_maxima(const std::byte* x, size_t padded, uint32_t* maxima) {
    uint32_t most = 0;
    for (size_t band = 0; band < padded; band += topq::kBand, maxima += topq::kLanes) {
      std::fill_n(maxima, topq::kLanes, 0);
      const size_t end = std::min(band + topq::kBand, padded);
      for (size_t i = band; i < end; ++i) {
        uint32_t& column = maxima[i % topq::kLanes];
        column = std::max(column, magnitude(x, i));
      }
      most = std::max(most, *std::max_element(maxima, maxima + topq::kLanes));
    }
    return most;
  }

  static void collect(const std::byte* x, size_t padded, uint32_t least, topq::Found* found) {
    size_t count = 0;
    for (size_t i = 0; i < padded; ++i) {
      found->magnitude[count] = magnitude(x, i);
      found->place[count] = static_cast<uint32_t>(i);
      count += found->magnitude[count] >= least;
    }
    found->count = count;
  }
};

}  // namespace

extern const Kernel topq_scalar;
const Kernel topq_scalar = FloatChunks<topq::Format<Plain>>::kernel("scalar", always_usable);

}  // namespace wirepress
