/* SPDX-License-Identifier: Apache-2.0
 * Communicators that come from a session, and what is made of them, outlive MPI_Finalize: a message
 * that is sent before it may be received after it. */
#include "check.h"

#define N 300000
#define MOST 16

static MPI_Comm comms[MOST];
static int n_comms, rank, size;

static void add(MPI_Comm comm) { comms[n_comms++] = comm; }

/* All that MPI makes of a communicator. */
static void derive(MPI_Comm from) {
  MPI_Comm comm, half;
  MPI_Group group;
  MPI_Request request;
  MPI_Comm_dup(from, &comm), add(comm);
  MPI_Comm_dup_with_info(from, MPI_INFO_NULL, &comm), add(comm);
  MPI_Comm_idup(from, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  add(comm);
  MPI_Comm_split(from, 0, -rank, &comm), add(comm);
  MPI_Comm_split_type(from, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), add(comm);
  MPI_Comm_group(from, &group);
  MPI_Comm_create(from, group, &comm), add(comm);
  MPI_Comm_create_group(from, group, 3, &comm), add(comm);
  MPI_Group_free(&group);
  const int dims[] = {size}, periodic[] = {1};
  MPI_Cart_create(from, 1, dims, periodic, 0, &comm), add(comm);
  const int remain[] = {1};
  MPI_Cart_sub(comms[n_comms - 1], remain, &comm), add(comm);
  const int neighbor[] = {(rank + 1) % size};
  MPI_Dist_graph_create_adjacent(from, 0, NULL, MPI_UNWEIGHTED, 1, neighbor, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &comm);
  add(comm);
  MPI_Comm_split(from, rank % 2, 0, &half);
  MPI_Intercomm_create(half, 0, from, 1 - rank % 2, 4, &comm), add(comm);
  MPI_Comm_free(&half);
  MPI_Intercomm_merge(comm, rank % 2, &half), add(half);
}

/* The other one of two ranks, under whatever number. */
static int other(MPI_Comm comm) {
  int inter, mine;
  MPI_Comm_test_inter(comm, &inter);
  MPI_Comm_rank(comm, &mine);
  return inter ? 0 : 1 - mine;
}

int main(int argc, char **argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm first;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size == 2);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "session.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first);
  MPI_Group_free(&group);
  add(first);
  derive(first);
  unsigned char *data = malloc(N), *got = malloc(N);
  MPI_Request requests[MOST];
  if (rank == 0) {
    for (int i = 0; i < n_comms; ++i) {
      fill(data, N, TEXT, 1);
      MPI_Isend(data, N, MPI_BYTE, other(comms[i]), i, comms[i], &requests[i]);
    }
    MPI_Send(data, N, MPI_BYTE, 1, 99, MPI_COMM_WORLD);
  } else {
    MPI_Recv(got, N, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(filled(got, N, TEXT, 1));
  }
  MPI_Finalize();
  for (int i = 0; i < n_comms && rank == 1; ++i) {
    MPI_Status status;
    memset(got, 0, N);
    MPI_Recv(got, N, MPI_BYTE, other(comms[i]), i, comms[i], &status);
    if (count_of(&status, MPI_BYTE) != N || !filled(got, N, TEXT, 1)) {
      fprintf(stderr, "communicator %d: %d bytes\n", i, count_of(&status, MPI_BYTE));
      return 1;
    }
  }
  if (rank == 0) MPI_Waitall(n_comms, requests, MPI_STATUSES_IGNORE);
  for (int i = n_comms - 1; i >= 0; --i) MPI_Comm_free(&comms[i]);
  free(data), free(got);
  MPI_Session_finalize(&session);
  if (rank == 1) printf("ok session\n");
  return 0;
}
