// SPDX-License-Identifier: Apache-2.0
// Worker threads that meet at a barrier.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <vector>

namespace rtm {

double now();  // seconds, monotonic

class Team {
 public:
  // cores: one for each worker in turn; none: not pinned.
  Team(int n, const std::vector<int>& cores) : n_(n), cores_(cores), barrier_(n) {}

  int size() const { return n_; }
  // Runs body(worker) on all of them. The first exception is thrown again when all have ended; a
  // worker that threw leaves the barrier, and the others should ask failed() behind it.
  void run(const std::function<void(int)>& body);
  void meet() { barrier_.arrive_and_wait(); }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  int n_;
  std::vector<int> cores_;
  std::barrier<> barrier_;
  std::atomic<bool> failed_{false};
};

}  // namespace rtm
