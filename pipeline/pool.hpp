// SPDX-License-Identifier: Apache-2.0
// Threads that are made once and used again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace wirepress {

// n workers, the calling thread being worker 0. Threads start at the first parallel job, and anew
// in a forked child.
class ThreadPool {
 public:
  ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // Calls job(context, worker) once for each worker 0..n_workers-1, at the same time; returns when
  // all are done. Where threads cannot be started, fewer workers run: a job must share its work
  // out dynamically.
  void run(int n_workers, void (*job)(void* context, int worker), void* context);

 private:
  struct Crew;
  void leave_to_parent();
  std::unique_ptr<Crew> crew_;
  unsigned made_at_ = 0;  // n_forks() of the crew
};

// Cores this process may use.
int usable_cores();

}  // namespace wirepress
