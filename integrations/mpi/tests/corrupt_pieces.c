/* SPDX-License-Identifier: Apache-2.0
 * With flip.c: messages in pieces, of which some pieces or heads are damaged. Each is right or an
 * error, those between them are right, and nothing hangs. */
#include "check.h"

int main(int argc, char **argv) {
  const int n = 3 << 20;
  int rank, refused = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  unsigned char *buffer = malloc((size_t)n + 100);
  for (unsigned k = 0; k < 12; ++k) {
    if (rank == 0) {
      fill(buffer, (size_t)n, TEXT, k);
      MPI_Send(buffer, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Send(buffer, 500, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
      continue;
    }
    int class;
    memset(buffer, 0x33, (size_t)n + 100);
    MPI_Error_class(MPI_Recv(buffer, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    CHECK(class == MPI_ERR_OTHER || (class == MPI_SUCCESS && filled(buffer, (size_t)n, TEXT, k)));
    refused += class != MPI_SUCCESS;
    CHECK(all_bytes(buffer + n, 100, 0x33));
    MPI_Recv(buffer, 500, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(buffer, 500, TEXT, k));
  }
  if (rank == 1) printf("refused %d\n", refused);
  MPI_Finalize();
  free(buffer);
  return 0;
}
