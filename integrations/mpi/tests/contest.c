/* SPDX-License-Identifier: Apache-2.0
 * contest N: N calls each of Bcast, Allreduce and Allgather of noise, on two communicators; every
 * result is checked, whoever runs the call. */
#include "check.h"

enum { kBytes = 256 << 10 };

static void calls(MPI_Comm comm, unsigned seed) {
  static unsigned char data[kBytes];
  static int sums[kBytes / 4], mine[kBytes / 4];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int root = (int)seed % size;
  if (rank == root) fill(data, kBytes, NOISE, seed);
  MPI_Bcast(data, kBytes, MPI_BYTE, root, comm);
  CHECK(filled(data, kBytes, NOISE, seed));

  for (int i = 0; i < kBytes / 4; ++i) mine[i] = (int)seed * rank + i;
  MPI_Allreduce(mine, sums, kBytes / 4, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < kBytes / 4; ++i)
    CHECK(sums[i] == (int)seed * (size * (size - 1) / 2) + i * size);

  const int part = kBytes / size;
  unsigned char *own = data + (size_t)rank * (size_t)part;
  fill(own, (size_t)part, NOISE, seed + (unsigned)rank);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, data, part, MPI_BYTE, comm);
  for (int i = 0; i < size; ++i)
    CHECK(filled(data + (size_t)i * (size_t)part, (size_t)part, NOISE, seed + (unsigned)i));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
  int rank, size;
  MPI_Comm reversed;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  for (unsigned i = 0; i < n; ++i) calls(MPI_COMM_WORLD, i);
  for (unsigned i = 0; i < n; ++i) calls(reversed, i); /* frees what it learnt */
  MPI_Comm_free(&reversed);
  if (rank == 0) puts("ok");
  MPI_Finalize();
  return 0;
}
