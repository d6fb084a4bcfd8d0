/* SPDX-License-Identifier: Apache-2.0
 * Programs that something happens to.
 *
 *   faults killed          rank 1 dies while rank 0 sends it a large message
 *   faults unreceived N    rank 0 frees the request of N bytes that rank 1 never receives
 *   faults memory          messages and collectives; memory may be refused (memory.c) */
#include <signal.h>
#include <unistd.h>

#include "check.h"

static int rank;

static void killed(void) {
  const int n = 128 << 20;
  unsigned char *buffer = malloc((size_t)n);
  MPI_Request request;
  fill(buffer, (size_t)n, NOISE, 1);
  for (int i = 0; i < n; i += 2) buffer[i] = 0; /* half of it compresses: the frame is large */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Send(buffer, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    int flag = 0;
    MPI_Irecv(buffer, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    const double end = MPI_Wtime() + 0.3;
    while (MPI_Wtime() < end && !flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
}

static void unreceived(int n) {
  unsigned char *buffer = calloc(1, (size_t)n);
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(buffer, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* the buffer is left to the end of the process */
}

/* With errors returned: what succeeds is right, what fails says why. */
static void memory(void) {
  const int n = 900000; /* more than a spare buffer holds */
  int failed = 0, class;
  unsigned char *in = malloc((size_t)n * 4), *out = malloc((size_t)n * 4);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (unsigned round = 0; round < 60; ++round) {
    MPI_Status status;
    fill(in, (size_t)n, TEXT, round);
    memset(out, 0x55, (size_t)n);
    int error = MPI_Sendrecv(in, n, MPI_BYTE, !rank, 0, out, n, MPI_BYTE, !rank, 0, MPI_COMM_WORLD,
                             &status);
    MPI_Error_class(error, &class);
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
    if (!error) CHECK(filled(out, (size_t)n, TEXT, round));
    failed += error != MPI_SUCCESS;
    float *x = (float *)in, *y = (float *)out;
    for (int i = 0; i < n; ++i) x[i] = (float)(i / 30 % 1000 + rank);
    error = MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Error_class(error, &class);
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
    for (int i = 0; !error && i < n; ++i) CHECK(y[i] == (float)(i / 30 % 1000 * 2 + 1));
    failed += error != MPI_SUCCESS;
    fill(in, (size_t)n, TEXT, rank == 0 ? round : 0);
    error = MPI_Bcast(in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Error_class(error, &class);
    CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
    if (!error) CHECK(filled(in, (size_t)n, TEXT, round));
    failed += error != MPI_SUCCESS;
  }
  printf("failed %d\n", failed);
  free(in);
  free(out);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!strcmp(argv[1], "killed")) killed();
  if (!strcmp(argv[1], "unreceived")) unreceived(atoi(argv[2]));
  if (!strcmp(argv[1], "memory")) memory();
  MPI_Finalize();
  printf("ok faults\n");
  return 0;
}
