/* SPDX-License-Identifier: Apache-2.0
 * waits SIZE N MILLISECONDS: every rank of the first half sends N messages of doubles to one of the
 * second half, which computes for so long before it takes each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int count = atoi(argv[1]) / 8, n = atoi(argv[2]), half = size / 2;
  const double seconds = atof(argv[3]) / 1000;
  double *data = malloc((size_t)count * sizeof *data), sum = 0;
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < count; ++k) data[k] = i + k / 64; /* lines of equal values */
    if (rank < half) {
      MPI_Send(data, count, MPI_DOUBLE, rank + half, 0, MPI_COMM_WORLD);
    } else {
      for (int k = 0; k < count; ++k) data[k] = -1;
      compute(seconds);
      MPI_Recv(data, count, MPI_DOUBLE, rank - half, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < count; ++k)
        if (data[k] != i + k / 64) MPI_Abort(MPI_COMM_WORLD, 3);
      sum += data[count - 1];
    }
  }
  if (rank == half) printf("sum %.17g\n", sum);
  free(data);
  MPI_Finalize();
  return 0;
}
