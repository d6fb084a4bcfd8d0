/* SPDX-License-Identifier: Apache-2.0
 * Takes the addresses of functions; built without position-independent code they are its own. */
#include "check.h"

typedef int Receive(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

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
    Receive *volatile receive = MPI_Recv;
    receive(data, N, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(data, N, TEXT, 1));
  }
  MPI_Finalize();
  return 0;
}
