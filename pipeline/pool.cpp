// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pool.hpp"

#include <sched.h>

#include <exception>

#include "base/process.hpp"

namespace wirepress {
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
