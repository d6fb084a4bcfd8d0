/* SPDX-License-Identifier: Apache-2.0
 * A driver that is loaded when MPI is long at work: late_driver PLUGIN DRIVER. Nobody asks about
 * addresses before; after a library was loaded (PLUGIN) it is looked for, and from the moment that
 * it is there (DRIVER, libcuda.so.1) each call asks it about its buffers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* The library asks this clock before it looks for a driver; MPI's own event loop asks it, too. */
static atomic_int n_looks;
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
  Dl_info from;
  if (clock == CLOCK_MONOTONIC_COARSE && dladdr(__builtin_return_address(0), &from) &&
      strstr(from.dli_fname, "wirepress"))
    ++n_looks;
  return (int)syscall(SYS_clock_gettime, clock, time);
}

static int rank;
static int mine[4], got[8];

static void calls(void) {
  const int other = 1 - rank;
  MPI_Request request[2];
  mine[0] = rank;
  MPI_Bcast(mine + 1, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allreduce(mine, got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(got[0] == 1);
  MPI_Alltoall(mine + 2, 1, MPI_INT, got + 2, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Irecv(got + 4, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request[0]);
  MPI_Isend(mine, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  CHECK(got[4] == other);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm ring; /* Open MPI loads components of its own for it */
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){1}, 0, &ring);
  MPI_Comm_free(&ring);
  for (int i = 0; i < 10; ++i) calls();
  n_looks = 0;
  for (int i = 0; i < 1000; ++i) calls();
  CHECK(n_looks == 0);
  void *plugin = dlopen(argv[1], RTLD_NOW);
  CHECK(plugin);
  calls();
  CHECK(n_looks > 0);
  CHECK(dlclose(plugin) == 0);
  n_looks = 0;
  for (int i = 0; i < 1000; ++i) calls();
  CHECK(n_looks == 0);
  void *driver = dlopen(argv[2], RTLD_NOW);
  int (*asked)(const void *) = (int (*)(const void *))dlsym(driver, "driver_was_asked");
  CHECK(driver && asked);
  CHECK(!asked(mine + 1));
  usleep(20000); /* a driver takes longer until it has memory; it is looked for once a tick */
  calls();
  CHECK(asked(mine + 1) && asked(mine) && asked(got) && asked(mine + 2) && asked(got + 2));
  MPI_Finalize();
  if (rank == 0) printf("ok late driver\n");
  return 0;
}
