// SPDX-License-Identifier: Apache-2.0
// trits: behind terngrad: the places and signs of the values that are not zero (spec.md).
#include "base/kernel.hpp"
#include "codecs/trits/units.hpp"

namespace wirepress {

extern const Codec trits_codec;
const Codec trits_codec = {
    .name = "trits",
    .sentence = "behind terngrad, without loss: places and signs of what is not zero",
    .params = {},
    .lossless = true,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = false,
    .check = nullptr,
    .bound =
        [](const Args&, size_t n) {
          constexpr size_t kGroups = trits::kUnitPairs / trits::kPairs;
          const size_t groups = (n + trits::kUnit - 1) / trits::kUnit * kGroups;
          return trits::kLengthSize + n + trits::kCountSize * groups;
        },
};

}  // namespace wirepress
