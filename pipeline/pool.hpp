// SPDX-License-Identifier: Apache-2.0
// Threads and memory that are made once and used again.
#pragma once

#include <condition_variable>
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

// n workers, the calling thread being worker 0. Threads start at the first parallel job.
class ThreadPool {
 public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // Calls job(context, worker) once for each worker 0..n_workers-1, at the same time; returns when
  // all are done. Where threads cannot be started, fewer workers run: a job must share its work
  // out dynamically.
  void run(int n_workers, void (*job)(void* context, int worker), void* context);

 private:
  void serve(int worker);
  void grow(int n_threads);

  std::mutex mutex_;
  std::condition_variable start_, finish_;
  std::vector<std::thread> threads_;
  void (*job_)(void*, int) = nullptr;
  void* context_ = nullptr;
  uint64_t round_ = 0;
  int wanted_ = 0;  // threads that take part in this round
  int running_ = 0;
  bool stop_ = false;
};

// Cores this process may use.
int usable_cores();

}  // namespace wirepress
