// SPDX-License-Identifier: Apache-2.0
// A job like many: each step computes, exchanges halos with both neighbours, and sums. Prints its
// seconds. argv: steps, microseconds of computing a step.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kHalo = 8192, kSum = 32768 };

static double work(double seconds) {
  static volatile double sink = 1;
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
    double x = sink;
    for (int i = 0; i < 2000; ++i) x = x * 0.999999 + 0.5;
    sink = x;
  }
  return sink;
}

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 1000;
  const double computing = (argc > 2 ? atof(argv[2]) : 1000) * 1e-6;
  int rank, n;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  double *data = calloc(4 * kHalo, sizeof *data), *sums = calloc(2 * kSum, sizeof *sums);
  const int up = (rank + 1) % n, down = (rank + n - 1) % n;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < steps; ++i) {
    MPI_Request requests[4];
    MPI_Irecv(data, kHalo, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data + kHalo, kHalo, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(data + 2 * kHalo, kHalo, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(data + 3 * kHalo, kHalo, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[3]);
    data[2 * kHalo] = work(computing);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(sums, sums + kSum, kSum, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(sums, sums + kSum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.6f\n", MPI_Wtime() - start);
  free(data);
  free(sums);
  MPI_Finalize();
  return 0;
}
