// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pool.hpp"

#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <system_error>

namespace wirepress {

Buffer::~Buffer() { std::free(data_); }

std::byte* Buffer::reserve(size_t size, size_t keep) {
  if (size <= capacity_ && data_) return data_;
  // 64: a cache line, and the widest vector. A quarter more, so that slow growth settles.
  const size_t wanted = (size + size / 4 + 64 + 63) / 64 * 64;
  auto* grown = static_cast<std::byte*>(std::aligned_alloc(64, wanted));
  if (!grown) return nullptr;
  if (keep) std::memcpy(grown, data_, keep);
  std::free(data_);
  data_ = grown;
  capacity_ = wanted;
  return data_;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::grow(int n_threads) {
  while (static_cast<int>(threads_.size()) < n_threads) {
    const int worker = static_cast<int>(threads_.size()) + 1;
    try {
      threads_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::exception&) {  // no thread or no memory for one: work with what there is
      return;
    }
  }
}

void ThreadPool::run(int n_workers, void (*job)(void*, int), void* context) {
  if (n_workers <= 1) return job(context, 0);
  {
    std::lock_guard lock(mutex_);
    grow(n_workers - 1);
    job_ = job;
    context_ = context;
    wanted_ = std::min<int>(n_workers - 1, static_cast<int>(threads_.size()));
    running_ = wanted_;
    ++round_;
  }
  start_.notify_all();
  job(context, 0);
  std::unique_lock lock(mutex_);
  finish_.wait(lock, [this] { return running_ == 0; });
}

void ThreadPool::serve(int worker) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stop_ || (round_ != seen && running_ > 0); });
    if (stop_) return;
    seen = round_;
    if (worker > wanted_) continue;
    lock.unlock();
    job_(context_, worker);
    lock.lock();
    if (--running_ == 0) finish_.notify_one();
  }
}

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace wirepress
