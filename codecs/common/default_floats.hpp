// SPDX-License-Identifier: Apache-2.0
// The processor's default treatment of floats, for codecs whose bounds or bytes rest on it: what
// the caller, or a thread's beginning, does with denormals and rounding is put aside.
#pragma once

#include <cfenv>

namespace wirepress {

class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace wirepress
