/* SPDX-License-Identifier: Apache-2.0
 * One message of more than 2^31 bytes, mostly zeros, from rank 0 to rank 1, in each way. */
#include "check.h"

int main(int argc, char **argv) {
  const size_t n = (size_t)580 << 20, step = 1 << 18, run = 1 << 14; /* floats: 2.27 GiB */
  MPI_Init(&argc, &argv);
  int rank, n_received;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *data = calloc(n, sizeof *data);
  CHECK(data);
  for (int way = 0; way < 2; ++way) {
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
      for (size_t i = 0; i < n; i += step)
        for (size_t k = 0; k < run; ++k) data[i + k] = (float)(i / step + k / 10) + (float)way;
      if (way == 0) MPI_Send(data, (int)n, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
      if (way == 1) MPI_Isend(data, (int)n, MPI_FLOAT, 1, 1, MPI_COMM_WORLD, &request);
      if (way == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      if (way == 1) memset(data, 0x55, n * sizeof *data);
      MPI_Recv(data, (int)n, MPI_FLOAT, 0, way, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_FLOAT, &n_received);
      CHECK(n_received == (int)n);
      for (size_t i = 0; i < n; i += step)
        for (size_t k = 0; k < step; ++k)
          CHECK(data[i + k] == (k < run ? (float)(i / step + k / 10) + (float)way : 0));
    }
  }
  if (rank == 0) printf("ok large\n");
  MPI_Finalize();
  free(data);
  return 0;
}
