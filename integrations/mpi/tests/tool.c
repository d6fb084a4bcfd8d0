/* SPDX-License-Identifier: Apache-2.0
 * A program with a profiling tool linked into it: its MPI_Recv comes before anybody's. */
#include "check.h"

static int received;

int MPI_Recv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status) {
  ++received;
  return PMPI_Recv(buffer, n, type, from, tag, comm, status);
}

int main(int argc, char **argv) {
  enum { N = 200000 };
  static unsigned char data[N];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    fill(data, N, TEXT, 1);
    MPI_Send(data, N, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Recv(data, N, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(received == 1 && filled(data, N, TEXT, 1));
  }
  MPI_Finalize();
  return 0;
}
