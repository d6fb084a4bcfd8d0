/* SPDX-License-Identifier: Apache-2.0
 * Collectives among ranks of a node from and to memory of an emulated GPU, which ends who touches
 * it: MPI runs them, on copies. Each call several times, as it goes another way once its
 * communicator was the last.  inside    ranks but the first share a node */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "check.h"

enum { N = 3000, MOST = 8 };
static void *(*device_alloc)(int, size_t);
static int (*copy)(void *, const void *, size_t);
static void (*device_free)(void *);
static int *out, *in; /* on the device, MOST * N */

static void look(int *here, size_t n) { CHECK(copy(here, in, 4 * n) == 0); }

static void calls(MPI_Comm comm) {
  static int here[MOST * N];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK(size <= MOST);
  const size_t n = (size_t)size * N;
  for (int again = 0; again < 3; ++again) {
    for (size_t i = 0; i < n; ++i) here[i] = (int)i + 7 * rank + again;
    CHECK(copy(out, here, 4 * n) == 0);
    const int all = size * (size - 1) / 2 * 7 + size * again;
    MPI_Allreduce(out, in, N, MPI_INT, MPI_SUM, comm);
    look(here, N);
    for (int i = 0; i < N; ++i) CHECK(here[i] == i * size + all);
    MPI_Allreduce(MPI_IN_PLACE, in, N, MPI_INT, MPI_MAX, comm);
    look(here, N);
    for (int i = 0; i < N; ++i) CHECK(here[i] == i * size + all);
    MPI_Reduce(out, in, N, MPI_INT, MPI_SUM, 0, comm);
    look(here, N);
    for (int i = 0; i < N; ++i) CHECK(here[i] == i * size + all);
    MPI_Reduce_scatter_block(out, in, N, MPI_INT, MPI_SUM, comm);
    look(here, N);
    for (int i = 0; i < N; ++i) CHECK(here[i] == (i + rank * N) * size + all);
    MPI_Allgather(out, N, MPI_INT, in, N, MPI_INT, comm);
    look(here, n);
    for (size_t i = 0; i < n; ++i) CHECK(here[i] == (int)(i % N) + 7 * (int)(i / N) + again);
    MPI_Alltoall(out, N, MPI_INT, in, N, MPI_INT, comm);
    look(here, n);
    for (size_t i = 0; i < n; ++i)
      CHECK(here[i] == (int)(i % N) + rank * N + 7 * (int)(i / N) + again);
    MPI_Scatter(out, N, MPI_INT, in, N, MPI_INT, 0, comm);
    look(here, N);
    for (int i = 0; i < N; ++i) CHECK(here[i] == i + rank * N + again);
    MPI_Bcast(rank == 0 ? out : in, N, MPI_INT, 0, comm);
    if (rank != 0) look(here, N);
    for (int i = 0; rank != 0 && i < N; ++i) CHECK(here[i] == i + again);
  }
}

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  device_alloc = (void *(*)(int, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_alloc");
  copy = (int (*)(void *, const void *, size_t))dlsym(RTLD_DEFAULT, "wirepress_mpi_copy");
  device_free = (void (*)(void *))dlsym(RTLD_DEFAULT, "wirepress_mpi_device_free");
  CHECK(device_alloc && copy && device_free);
  CHECK(out = device_alloc(0, sizeof(int) * MOST * N));
  CHECK(in = device_alloc(0, sizeof(int) * MOST * N));
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
  calls(MPI_COMM_SELF);
  calls(half);
  MPI_Comm_free(&half);
  device_free(out);
  device_free(in);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("ok inside\n");
  MPI_Finalize();
  return 0;
}
