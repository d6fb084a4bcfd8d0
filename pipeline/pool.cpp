// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pool.hpp"

#include <sched.h>

#include <deque>
#include <exception>

#include "base/memory.hpp"
#include "base/process.hpp"

namespace wirepress {
// The threads, and what they share with the thread that runs a job.
struct ThreadPool::Crew {
  std::mutex mutex;
  std::condition_variable finish;
  std::deque<std::condition_variable> start;  // of each thread: others sleep on
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
    for (std::condition_variable& one : start) one.notify_one();
    for (std::thread& thread : threads) thread.join();
  }

  void grow(int n_threads) {
    if (static_cast<int>(threads.size()) >= n_threads) return;
    const SignalsBlocked blocked;
    while (static_cast<int>(threads.size()) < n_threads) {
      const int worker = static_cast<int>(threads.size()) + 1;
      try {
        if (start.size() < static_cast<size_t>(worker)) start.emplace_back();
        threads.emplace_back([this, worker, mine = &start.back()] { serve(worker, mine); });
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
    for (size_t i = 0; i < static_cast<size_t>(wanted); ++i) start[i].notify_one();
    work(with, 0);
    std::unique_lock lock(mutex);
    finish.wait(lock, [this] { return running == 0; });
  }

  void serve(int worker, std::condition_variable* mine) {
    is_own_thread = true;
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      mine->wait(lock, [&] { return stop || (round != seen && worker <= wanted); });
      if (stop) return;
      seen = round;
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
