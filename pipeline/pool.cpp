// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace wirepress {
namespace {

// While it lives, threads that are made take no signals but those of their own faults: a program's
// handlers go on running where they ran, and a blocked read of its main thread is interrupted.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

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
  if (static_cast<int>(threads_.size()) >= n_threads) return;
  const SignalsBlocked blocked;
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
