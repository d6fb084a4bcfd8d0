/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 sends large messages to rank 1, which checks every value. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, TIMES = 8 };

int main(int argc, char **argv) {
  int rank, size, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *values = malloc(COUNT * sizeof *values);
  for (int time = 0; size == 2 && time < TIMES; ++time) {
    if (rank == 0) {
      for (int i = 0; i < COUNT; ++i) values[i] = (float)(i / 64 + time);
      MPI_Send(values, COUNT, MPI_FLOAT, 1, time, MPI_COMM_WORLD);
    } else {
      MPI_Recv(values, COUNT, MPI_FLOAT, 0, time, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < COUNT; ++i) wrong += values[i] != (float)(i / 64 + time);
    }
  }
  if (rank == 1) printf("received, %d wrong\n", wrong);
  free(values);
  MPI_Finalize();
  return size != 2 || wrong != 0;
}
