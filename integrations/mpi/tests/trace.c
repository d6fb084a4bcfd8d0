/* SPDX-License-Identifier: Apache-2.0
 * Calls that test_trace.py knows, on two ranks. Arguments: "kill": after 3000 messages rank
 * 1 kills itself; "large": sums of 20 x 1 MiB, and 20 columns of a matrix; "turns": zeros and
 * ones in messages that take turns; "threads": two threads of each rank at once. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, other;

static void exchanges(int n, int tag) {
  double out = 1, in = 0;
  for (int i = 0; i < n; ++i) {
    if (rank == 0) MPI_Send(&out, 1, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&out, 1, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD);
  }
}

static void *thread(void *tag) {
  exchanges(200, *(int *)tag);
  return NULL;
}

static void messages(void) {
  static float data[30000], got[30000];
  for (int i = 0; i < 30000; ++i) data[i] = (float)(i % 100);
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (rank == 0) {
    MPI_Send(data, 30000, MPI_FLOAT, 1, 7, MPI_COMM_WORLD);
    MPI_Isend(data, 100, MPI_FLOAT, 1, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(data, 5, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  } else {
    usleep(20000); /* computes */
    MPI_Recv(got, 30000, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(got, 300, MPI_FLOAT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Sendrecv(data, 10, MPI_INT, other, 3, got, 20, MPI_INT, other, 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  /* persistent, twice; completed by Test after the other waited */
  MPI_Request both[2];
  MPI_Send_init(data, 50, MPI_FLOAT, other, 4, MPI_COMM_WORLD, &both[0]);
  MPI_Recv_init(got, 60, MPI_FLOAT, other, 4, MPI_COMM_WORLD, &both[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, both);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
  int done = 0;
  if (rank == 0) {
    usleep(10000);
    MPI_Send(data, 4, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(got, 4, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &requests[0]);
    while (!done) MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
  }
}

static void collectives(void) {
  static double data[4096], got[8192];
  int sizes[2] = {100, 200}, places[2] = {0, 100};
  MPI_Comm half, twin;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(data, 4096, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Allreduce(data, got, 1000, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, got, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(data, got, 500, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Allgather(data, 300, MPI_DOUBLE, got, 300, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Allgatherv(data, sizes[rank], MPI_DOUBLE, got, sizes, places, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Alltoall(data, 40, MPI_DOUBLE, got, 40, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Gather(data, 30, MPI_DOUBLE, got, 30, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Scatter(data, 20, MPI_DOUBLE, got, 20, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Reduce_scatter_block(data, got, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Iallreduce(data, got, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &half); /* turned round */
  MPI_Comm_dup(half, &twin);
  MPI_Bcast(data, 16, MPI_DOUBLE, 0, half);
  MPI_Bcast(data, 17, MPI_DOUBLE, 0, twin);
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
}

static void large(void) {
  enum { kN = 262144, kRows = 512 };
  float *data = malloc(kN * sizeof *data), *sums = malloc(kN * sizeof *sums);
  MPI_Datatype column;
  MPI_Type_vector(kRows, 256, kN / kRows, MPI_FLOAT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < kN; ++i) data[i] = (float)(i % (kN / kRows));
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(data, sums, kN, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(data, 1, column, other, 0, sums, 1, column, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&column);
  free(data);
  free(sums);
}

static void turns(void) {
  enum { kN = 16384, kSteps = 400 };
  static float data[2][kN], got[kN];
  for (int i = 0; i < kN; ++i) data[1][i] = 1;
  for (int i = 0; i < kSteps; ++i)
    MPI_Sendrecv(data[i % 2], kN, MPI_FLOAT, other, 0, got, kN, MPI_FLOAT, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int level;
  MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
                  &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (!strcmp(what, "threads")) {
    pthread_t second;
    int mine = 1, theirs = 2;
    pthread_create(&second, NULL, thread, &theirs);
    exchanges(200, mine);
    pthread_join(second, NULL);
  } else if (!strcmp(what, "large")) {
    large();
  } else if (!strcmp(what, "turns")) {
    turns();
  } else if (!strcmp(what, "kill")) {
    exchanges(1500, 0);
    if (rank == 1) raise(SIGKILL);
    exchanges(1, 0);
  } else {
    messages();
    collectives();
  }
  MPI_Finalize();
  printf("ok trace\n");
  return 0;
}
