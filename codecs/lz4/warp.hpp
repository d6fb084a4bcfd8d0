// SPDX-License-Identifier: Apache-2.0
// lz4 on a GPU: its decoder. Rules for encoders about the end of a block are not asked for, as
// spec.md allows.
#pragma once

#include "codecs/common/lz/warps.hpp"

namespace wirepress::lz4 {

struct Format {
  static constexpr const char* kName = "lz4";
  static constexpr bool kSaysSize = false;

  static constexpr bool begin(lz::Code&, uint32_t*) { return true; }

  static WPR_ON_DEVICE bool next(lz::Code& code, lz::Element* element) {
    if (code.left() == 0) return false;
    const uint32_t token = code.take(1);
    element->literals = token >> 4;
    element->match = token & 15;
    return element->literals < 15 || longer(code, &element->literals);
  }
  static WPR_ON_DEVICE bool match(lz::Code& code, lz::Element* element) {
    if (code.left() < 2) return false;
    element->offset = code.take(2);
    if (element->match == 15 && !longer(code, &element->match)) return false;
    element->match += 4;
    return true;
  }

 private:
  static WPR_ON_DEVICE bool longer(lz::Code& code, uint64_t* length) {
    for (;;) {
      if (code.left() == 0) return false;
      const uint32_t more = code.take(1);
      *length += more;
      if (more != 255) return true;
    }
  }
};

using Warps = lz::WarpLz<Format>;

}  // namespace wirepress::lz4
