// SPDX-License-Identifier: Apache-2.0
#include "base/process.hpp"

#include <pthread.h>

#include <atomic>
#include <initializer_list>

namespace wirepress {
namespace {

std::atomic<unsigned> g_forks{0};
[[maybe_unused]] const int kForksAreCounted =
    pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

unsigned n_forks() { return g_forks.load(std::memory_order_relaxed); }

}  // namespace wirepress
