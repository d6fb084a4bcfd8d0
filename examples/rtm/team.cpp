// SPDX-License-Identifier: Apache-2.0
#include "team.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace rtm {
namespace {

// Denormals, of which the head of a wave is full, cost many processors a hundred cycles each.
void flush_denormals() {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Team::run(const std::function<void(int)>& body) {
  std::exception_ptr first;
  std::mutex mutex;
  failed_ = false;
  const auto work = [&](int worker) {
    flush_denormals();
    if (!cores_.empty()) pin(cores_[static_cast<size_t>(worker) % cores_.size()]);
    try {
      body(worker);
    } catch (...) {
      failed_ = true;
      barrier_.arrive_and_drop();
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < n_; ++worker) threads.emplace_back(work, worker);
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace rtm
