// SPDX-License-Identifier: Apache-2.0
// The clock that codecs are timed by: processor time of this thread, which neighbours do not count
// towards.
#pragma once

#include <ctime>

namespace wirepress {

inline double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace wirepress
