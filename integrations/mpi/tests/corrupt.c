/* SPDX-License-Identifier: Apache-2.0
 * With flip.c between the interposer and MPI: every damaged message is an error through the
 * communicator's handler or, where damage cannot be seen without a checksum, some bytes; nothing
 * is written behind the buffer, and the next message is good. argv[1]: "checked" if frames carry
 * checksums: then every damage is seen. */
#include "check.h"

int main(int argc, char **argv) {
  const int n = 200000, checked = argc > 1 && strcmp(argv[1], "checked") == 0;
  int rank, refused = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  unsigned char *buffer = malloc(2 * (size_t)n);
  for (int kind = 1; kind <= 2; ++kind) {
    for (int k = 0; k < 64; ++k) {
      const int tag = kind * 1000 + k;
      if (rank == 0) {
        fill(buffer, (size_t)n, TEXT, (unsigned)k);
        MPI_Send(buffer, n, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        MPI_Send(buffer, n, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
        continue;
      }
      int error, class;
      MPI_Status status;
      memset(buffer, 0x33, 2 * (size_t)n);
      if (k % 2) {
        error = MPI_Recv(buffer, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
      } else {
        MPI_Request request;
        MPI_Irecv(buffer, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        error = MPI_Waitall(1, &request, &status);
        MPI_Error_class(error, &class);
        if (class == MPI_ERR_IN_STATUS) error = status.MPI_ERROR;
      }
      MPI_Error_class(error, &class);
      if (error == MPI_SUCCESS && (checked || kind == 2))
        CHECK(kind == 2 && (k == 63 || count_of(&status, MPI_BYTE) < 64));
      if (error != MPI_SUCCESS) {
        CHECK(class == MPI_ERR_OTHER || class == MPI_ERR_TRUNCATE);
        ++refused;
      }
      CHECK(all_bytes(buffer + n, (size_t)n, 0x33));
      CHECK(MPI_Recv(buffer, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
      CHECK(filled(buffer, (size_t)n, TEXT, (unsigned)k));
    }
  }
  if (rank == 1) printf("refused %d\n", refused);
  MPI_Finalize();
  free(buffer);
  return 0;
}
