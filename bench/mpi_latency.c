// SPDX-License-Identifier: Apache-2.0
// Half round trips of 8 bytes between ranks 0 and 1, in batches: "MIN MEDIAN" in nanoseconds.
// argv[1]: number of batches.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTrips = 500 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  const int batches = argc > 1 ? atoi(argv[1]) : 400;
  double *nanoseconds = malloc((size_t)batches * sizeof *nanoseconds);
  char data[8] = {0};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = -10; i < batches; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int k = 0; k < kTrips; ++k) {
      if (rank == 0) MPI_Send(data, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      if (rank < 2) MPI_Recv(data, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(data, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (i >= 0) nanoseconds[i] = (MPI_Wtime() - start) / (2 * kTrips) * 1e9;
  }
  qsort(nanoseconds, (size_t)batches, sizeof *nanoseconds, by_value);
  if (rank == 0) printf("%.1f %.1f\n", nanoseconds[0], nanoseconds[batches / 2]);
  MPI_Finalize();
  free(nanoseconds);
  return 0;
}
