// SPDX-License-Identifier: Apache-2.0
#include "store/kit/throttled_file.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "store/codec.hpp"

namespace wirepress::store::kit {

void ThrottledFile::pay(Bucket* bucket, size_t n) {
  constexpr double kBurst = 0.02;
  double wait;
  {
    const std::lock_guard lock(bucket->mutex);
    bucket->free_at = std::max(bucket->free_at, now() - kBurst) + static_cast<double>(n) / rate_;
    wait = bucket->free_at - now();
  }
  if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
}

ssize_t ThrottledFile::read(int descriptor, void* dst, size_t n, uint64_t offset) {
  const ssize_t got = Calls::read(descriptor, dst, n, offset);
  if (got > 0) pay(&reads_, static_cast<size_t>(got));
  return got;
}

ssize_t ThrottledFile::write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) {
  const ssize_t taken = Calls::write(descriptor, parts, n_parts, offset);
  if (taken > 0) pay(&writes_, static_cast<size_t>(taken));
  return taken;
}

}  // namespace wirepress::store::kit
