/* SPDX-License-Identifier: Apache-2.0
 * Memory runs out: preloaded, on rank MEMORY_VICTIM it refuses what is at least as large as
 * MEMORY_REFUSED says, once the program has set that. Nothing but the interposer's buffers asks so.
 * MEMORY_THREADS: that many threads, and no more, can be started there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int is_victim(void) {
  static int victim = -1;
  if (victim < 0) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *chosen = getenv("MEMORY_VICTIM");
    if (!rank) rank = getenv("PMI_RANK");
    victim = rank && atoi(rank) == (chosen ? atoi(chosen) : 1);
  }
  return victim;
}

void *aligned_alloc(size_t alignment, size_t size) {
  static void *(*next)(size_t, size_t);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
  const char *refused = getenv("MEMORY_REFUSED");
  if (refused && is_victim() && alignment == 64 && size >= strtoul(refused, NULL, 10)) {
    errno = ENOMEM;
    return NULL;
  }
  return next(alignment, size);
}

/* Those of the interposer: MPI's own are started by C. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static int granted;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  const char *most = getenv("MEMORY_THREADS");
  Dl_info caller;
  if (most && is_victim() && dladdr(__builtin_return_address(0), &caller) && caller.dli_fname &&
      (strstr(caller.dli_fname, "libstdc++") || strstr(caller.dli_fname, "libwirepress")) &&
      granted++ >= atoi(most)) {
    return EAGAIN;
  }
  return next(thread, attributes, body, argument);
}
