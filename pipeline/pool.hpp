// SPDX-License-Identifier: Apache-2.0
// Threads and memory that are made once and used again.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress {

// Memory that only grows, so that after warm-up nothing is allocated.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // At least `size` bytes; the first `keep` bytes survive. nullptr: no memory.
  std::byte* reserve(size_t size, size_t keep = 0);
  std::byte* data() { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
};

// How often this process and its forebears forked: a thread that was made before the last fork runs
// in the parent only.
unsigned n_forks();

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
