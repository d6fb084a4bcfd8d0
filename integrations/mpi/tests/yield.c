/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into ranks of MPICH over UCX, where there may be fewer cores than ranks: it polls
 * without giving way. A barrier of 4 ranks on 2 cores takes 12 ms, and 0.05 ms with this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker) {
  static unsigned (*progress)(void *);
  if (!progress) *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned n_events = progress(worker);
  if (n_events == 0) sched_yield();
  return n_events;
}
