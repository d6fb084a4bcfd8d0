/* SPDX-License-Identifier: Apache-2.0
 * A job of nothing: rank 0 prints the milliseconds of MPI_Init, a barrier, and MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

int main(int argc, char **argv) {
  int rank;
  double at[4] = {now()};
  MPI_Init(&argc, &argv);
  at[1] = now();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  at[2] = now();
  MPI_Finalize();
  at[3] = now();
  if (rank == 0) printf("%.3f %.3f %.3f\n", at[1] - at[0], at[2] - at[1], at[3] - at[2]);
  return 0;
}
