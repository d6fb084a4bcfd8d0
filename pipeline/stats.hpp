// SPDX-License-Identifier: Apache-2.0
// What a context counts, and the stopwatch for it.
#pragma once

#include <chrono>
#include <cstdint>

namespace wirepress {

struct Stats {
  uint64_t raw_bytes = 0, wire_bytes = 0;
  uint64_t blocks = 0, bypassed_probe = 0, bypassed_size = 0;
  uint64_t expanded_bytes = 0;
  double compress_seconds = 0, decompress_seconds = 0;
};

// Adds the time of its scope.
class Stopwatch {
 public:
  explicit Stopwatch(double* total) : total_(total), start_(Clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { *total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double* total_;
  Clock::time_point start_;
};

}  // namespace wirepress
