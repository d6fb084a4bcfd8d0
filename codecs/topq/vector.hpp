// SPDX-License-Identifier: Apache-2.0
// The search for the largest values in lanes, one source for all instruction sets.
#pragma once

#include <bit>

#include "codecs/common/simd/lanes.hpp"
#include "codecs/topq/topq.hpp"

namespace wirepress::topq {
namespace {

struct Vector {
  using Sums = VectorSums<lanes::Set>;

  static uint32_t find_maxima(const std::byte* x, size_t padded, uint32_t* maxima) {
    using namespace lanes;
    Words most = splat(0u);
    for (size_t band = 0; band < padded; band += kBand, maxima += topq::kLanes) {
      Words column = splat(0u);
      for (size_t i = band; i < (band + kBand < padded ? band + kBand : padded); i += topq::kLanes)
        column = larger(column, without_sign(load(x + 4 * i)));
      store(reinterpret_cast<std::byte*>(maxima), as_floats(column));
      most = larger(most, column);
    }
    return largest(most);
  }

  static void collect(const std::byte* x, size_t padded, uint32_t least, Found* found) {
    using namespace lanes;
    const Words below = splat(least - 1);  // compared as signed numbers: -1 where least is 0
    size_t count = 0;
    for (size_t i = 0; i < padded; i += topq::kLanes) {
      const Words sizes = without_sign(load(x + 4 * i));
      uint32_t members = bits(below < sizes);
      if (members == 0) continue;
      uint32_t magnitudes[topq::kLanes];
      store(reinterpret_cast<std::byte*>(magnitudes), as_floats(sizes));
      for (; members != 0; members &= members - 1, ++count) {
        const uint32_t lane = static_cast<uint32_t>(std::countr_zero(members));
        found->magnitude[count] = magnitudes[lane];
        found->place[count] = static_cast<uint32_t>(i) + lane;
      }
    }
    found->count = count;
  }
};

}  // namespace
}  // namespace wirepress::topq
