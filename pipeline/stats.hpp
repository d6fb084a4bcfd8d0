// SPDX-License-Identifier: Apache-2.0
// What a context counts, and the stopwatch for it.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/kernel.hpp"

namespace wirepress {

struct Stats {
  uint64_t raw_bytes = 0, wire_bytes = 0;
  uint64_t blocks = 0, bypassed_probe = 0, bypassed_size = 0;
  uint64_t expanded_bytes = 0;
  double compress_seconds = 0, decompress_seconds = 0;
};

// What the engines' devices have done in the calling thread; the reason is one of theirs.
inline DeviceWork work_of_engines() {
  DeviceWork sum;
  for (const Engine* engine : engines()) {
    if (engine->work == nullptr) continue;
    const DeviceWork own = engine->work();
    sum.device_size += own.device_size;
    sum.cores_size += own.cores_size;
    if (*own.reason != '\0') sum.reason = own.reason;
  }
  return sum;
}

// What the calling thread had other kernels do than those that the option engine names, since the
// recipe's codecs have none of them (lacks_kernel).
struct OtherKernels {
  uint64_t size = 0;
  uint64_t engines_size = 0;  // what the cores had done for engines when it last grew
};
inline thread_local OtherKernels other_kernels;

inline void count_other_kernels(uint64_t raw_size) {
  if (raw_size > 0) other_kernels = {other_kernels.size + raw_size, work_of_engines().cores_size};
}

inline DeviceWork all_work() {
  DeviceWork work = work_of_engines();
  if (other_kernels.size > 0 && other_kernels.engines_size == work.cores_size)
    work.reason = "no codec of the recipe has the kernel that option engine names";
  work.cores_size += other_kernels.size;
  return work;
}

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
