// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
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

namespace {

std::atomic<unsigned> g_forks{0};
[[maybe_unused]] const int kForksAreCounted =
    pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned n_forks() { return g_forks.load(std::memory_order_relaxed); }

// The threads, and what they share with the thread that runs a job.
struct ThreadPool::Crew {
  std::mutex mutex;
  std::condition_variable start, finish;
  std::vector<std::thread> threads;
  void (*job)(void*, int) = nullptr;
  void* context = nullptr;
  uint64_t round = 0;
  int wanted = 0;  // threads that take part in this round
  int running = 0;
  bool stop = false;

  ~Crew() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    start.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void grow(int n_threads) {
    if (static_cast<int>(threads.size()) >= n_threads) return;
    const SignalsBlocked blocked;
    while (static_cast<int>(threads.size()) < n_threads) {
      const int worker = static_cast<int>(threads.size()) + 1;
      try {
        threads.emplace_back([this, worker] { serve(worker); });
      } catch (const std::exception&) {  // no thread or no memory for one: work with what there is
        return;
      }
    }
  }

  void run(int n_workers, void (*work)(void*, int), void* with) {
    {
      const std::lock_guard lock(mutex);
      grow(n_workers - 1);
      job = work;
      context = with;
      wanted = std::min<int>(n_workers - 1, static_cast<int>(threads.size()));
      running = wanted;
      ++round;
    }
    start.notify_all();
    work(with, 0);
    std::unique_lock lock(mutex);
    finish.wait(lock, [this] { return running == 0; });
  }

  void serve(int worker) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      start.wait(lock, [&] { return stop || (round != seen && running > 0); });
      if (stop) return;
      seen = round;
      if (worker > wanted) continue;
      lock.unlock();
      job(context, worker);
      lock.lock();
      if (--running == 0) finish.notify_one();
    }
  }
};

ThreadPool::ThreadPool() = default;

ThreadPool::~ThreadPool() { leave_to_parent(); }

// In a forked child the crew's threads do not exist, and its mutex may be locked for ever: nothing
// of it can be used, joined or destroyed here. Its memory stays.
void ThreadPool::leave_to_parent() {
  if (crew_ && made_at_ != n_forks()) (void)crew_.release();
}

void ThreadPool::run(int n_workers, void (*job)(void*, int), void* context) {
  if (n_workers <= 1) return job(context, 0);
  leave_to_parent();
  if (!crew_) {
    crew_ = std::make_unique<Crew>();
    made_at_ = n_forks();
  }
  crew_->run(n_workers, job, context);
}

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace wirepress
