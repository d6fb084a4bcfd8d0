// SPDX-License-Identifier: Apache-2.0
// The filter's cd_values (README.md): the recipe, and behind it what set_local adds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace wirepress::hdf5 {

// How the elements of a chunk can be described to codecs: `count` of a type each.
struct Kind {
  wpr_dtype dtype;
  uint64_t count;
};

struct Settings {
  std::string recipe;  // "": the default
  bool described = false;
  wpr_dtype dtype = WPR_UINT8;
  std::vector<uint64_t> shape;  // of a chunk, at most WPR_MAX_DIMS; only where described

  // False: *error says what is wrong with them.
  bool read(const unsigned* values, size_t n, std::string* error);
  std::vector<unsigned> write() const;
  // A chunk of these extents. False: it is larger than these values can say.
  bool describe(const Kind& kind, const std::vector<uint64_t>& chunk);
  // Bytes of a chunk; only where described.
  uint64_t size() const;
};

}  // namespace wirepress::hdf5
