// SPDX-License-Identifier: Apache-2.0
// snappy on a GPU: its decoder.
#pragma once

#include "codecs/common/lz/warps.hpp"

namespace wirepress::snappy {

struct Format {
  static constexpr const char* kName = "snappy";
  static constexpr bool kSaysSize = true;

  static WPR_ON_DEVICE bool begin(lz::Code& code, uint32_t* size) {
    for (uint32_t shift = 0; shift < 35; shift += 7) {
      if (code.left() == 0) return false;
      const uint32_t byte = code.take(1), bits = byte & 127;
      if (shift == 28 && bits > 15) return false;
      *size |= bits << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  // A copy is an element without literals.
  static WPR_ON_DEVICE bool next(lz::Code& code, lz::Element* element) {
    const uint32_t tag = code.take(1), high = tag >> 2;
    if ((tag & 3) == 0) {
      const uint32_t more = high < 60 ? 0 : high - 59;
      if (code.left() < more) return false;
      element->literals = uint64_t{1} + (more == 0 ? high : code.take(more));
      return true;
    }
    const uint32_t more = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if (code.left() < more) return false;
    element->offset = code.take(more);
    if (more == 1) element->offset |= (high >> 3) << 8;
    element->match = more == 1 ? (high & 7) + 4 : high + 1;
    return true;
  }
  static constexpr bool match(lz::Code&, lz::Element*) { return true; }
};

using Warps = lz::WarpLz<Format>;

}  // namespace wirepress::snappy
