// SPDX-License-Identifier: Apache-2.0
// Which way a reader goes, as its gets show: two at neighbouring steps, or a prefetch, say it.
#pragma once

#include <cstdint>

#include "store/catalogue.hpp"

namespace wirepress::store {

class ReadAhead {
 public:
  // A get of `step`. A first one, or one of the same step again, leaves the direction as it is.
  void follow(const Catalogue& catalogue, uint64_t step) {
    if (got_ && last_ != step) direction_ = catalogue.direction(last_, step);
    got_ = true;
    last_ = step;
  }
  // A prefetch: the next get does not turn round, wherever it is.
  void turn(int direction) {
    direction_ = direction;
    got_ = false;
  }
  int direction() const { return direction_; }  // -1, 1; 0: not known
  bool is_new(uint64_t step) const { return !got_ || last_ != step; }
  uint64_t last() const { return last_; }  // the step that was got last; 0 before

 private:
  int direction_ = 0;
  uint64_t last_ = 0;
  bool got_ = false;
};

}  // namespace wirepress::store
