/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 sends, as plain data, what looks like a compressed message of another job of the same run,
 * whose half of the cookie is argv[1] (hexadecimal): an error for each kind of receive. What only
 * begins like one is data. */
#include "check.h"

enum { kSize = 200 };

static void forge(unsigned char *message, const char *run) {
  fill(message, kSize, NOISE, 7);
  for (int i = 0; i < 8; ++i) {
    const char digits[3] = {run[2 * i], run[2 * i + 1], 0};
    message[8 + i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  memcpy(message + 16, "WPR", 3);
}

static int class_of(int error) {
  int class;
  MPI_Error_class(error, &class);
  return class;
}

static void refuse(unsigned char *got) {
  MPI_Status status;
  MPI_Request request;
  MPI_Message message;
  CHECK(class_of(MPI_Recv(got, kSize, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status)) == MPI_ERR_OTHER);
  MPI_Irecv(got, kSize, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
  CHECK(class_of(MPI_Wait(&request, &status)) == MPI_ERR_OTHER);
  MPI_Probe(0, 3, MPI_COMM_WORLD, &status);
  CHECK(class_of(MPI_Recv(got, kSize, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status)) == MPI_ERR_OTHER);
  MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, &status);
  CHECK(class_of(MPI_Mrecv(got, kSize, MPI_BYTE, &message, &status)) == MPI_ERR_OTHER);
  MPI_Recv_init(got, kSize, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  CHECK(class_of(MPI_Wait(&request, &status)) == MPI_ERR_OTHER);
  MPI_Request_free(&request);
}

static void take(unsigned char *got, const unsigned char *message, int size, int tag) {
  MPI_Status status;
  int count;
  CHECK(MPI_Recv(got, kSize, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == size && memcmp(got, message, (size_t)size) == 0);
}

int main(int argc, char **argv) {
  unsigned char message[kSize], other[kSize], got[kSize];
  int rank;
  CHECK(argc > 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  forge(message, argv[1]);
  memcpy(other, message, kSize);
  other[16] = 'X';
  if (rank == 0) {
    for (int tag = 1; tag <= 5; ++tag) MPI_Send(message, kSize, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    MPI_Send(message, 32, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
    MPI_Send(other, kSize, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
  } else {
    refuse(got);
    take(got, message, 32, 6);
    take(got, other, kSize, 7);
  }
  MPI_Finalize();
  return 0;
}
