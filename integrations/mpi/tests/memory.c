/* SPDX-License-Identifier: Apache-2.0
 * Memory runs out: preloaded, on rank 1 it grants what the interposer sets aside at its start and
 * refuses all that follows. Nothing but the interposer's buffers asks for those. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

void *aligned_alloc(size_t alignment, size_t size) {
  static void *(*next)(size_t, size_t);
  static int granted, victim = -1;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
  if (victim < 0) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    victim = rank && *rank == '1';
  }
  if (victim && alignment == 64 && size >= 4096 && ++granted > 16) {
    errno = ENOMEM;
    return NULL;
  }
  return next(alignment, size);
}
