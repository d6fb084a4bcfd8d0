// SPDX-License-Identifier: Apache-2.0
// Every call that sends, one after the other, and what the host's NIC sent meanwhile: a line
//
//     NAME HOST BYTES PACKETS
//
// from each rank. traffic DOUBLES TIMES [random]: doubles a message or block, and how often. Data
// shrink unless they are random.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostRanks = 16 };
static int rank, size, n, peer;
static double *from, *to;
static int counts[kMostRanks], at[kMostRanks], bytes_at[kMostRanks];
static MPI_Datatype types[kMostRanks], gaps;
static MPI_Aint addresses[kMostRanks];
static MPI_Comm ring;
static int ring_counts[2], ring_at[2];

static void nic(unsigned long long *bytes, unsigned long long *packets) {
  char line[512];
  FILE *file = fopen("/proc/self/net/dev", "r");
  *bytes = *packets = 0;
  while (file && fgets(line, sizeof line, file)) {
    char *at_name = strstr(line, "eth0:");
    if (at_name) sscanf(at_name + 5, "%*u %*u %*u %*u %*u %*u %*u %*u %llu %llu", bytes, packets);
  }
  if (file) fclose(file);
}

// Every rank sends to the one half way round, which is on another host.
static void p2p(int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm)) {
  MPI_Request request;
  MPI_Irecv(to, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
  send(from, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void start(int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)) {
  MPI_Request requests[2];
  MPI_Irecv(to, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
  send(from, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static void persistent(int (*make)(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                   MPI_Request *)) {
  MPI_Request requests[2];
  MPI_Recv_init(to, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[0]);
  make(from, n, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}
// A receive is posted before a ready send.
static int ready(const void *b, int k, MPI_Datatype t, int d, int g, MPI_Comm c) {
  MPI_Barrier(c);
  return MPI_Rsend(b, k, t, d, g, c);
}

#define CASE(NAME, ...)                                                                     \
  do {                                                                                      \
    unsigned long long bytes, packets, before, packets_before;                              \
    if (only && strcmp(only, #NAME)) break;                                                 \
    MPI_Barrier(MPI_COMM_WORLD);                                                            \
    usleep(20000);                                                                          \
    nic(&before, &packets_before);                                                          \
    MPI_Barrier(MPI_COMM_WORLD);                                                            \
    for (int i = 0; i < times; ++i) {                                                       \
      __VA_ARGS__;                                                                          \
    }                                                                                       \
    MPI_Barrier(MPI_COMM_WORLD);                                                            \
    usleep(20000);                                                                          \
    nic(&bytes, &packets);                                                                  \
    printf("MPI_" #NAME " %s %llu %llu\n", host, bytes - before, packets - packets_before); \
    fflush(stdout);                                                                         \
  } while (0)
#define ICASE(NAME, ...)                   \
  CASE(NAME, {                             \
    MPI_Request request;                   \
    MPI_##NAME(__VA_ARGS__, &request);     \
    MPI_Wait(&request, MPI_STATUS_IGNORE); \
  })
#define PCASE(NAME, ...)                              \
  CASE(NAME, {                                        \
    MPI_Request request;                              \
    MPI_##NAME(__VA_ARGS__, MPI_INFO_NULL, &request); \
    MPI_Start(&request);                              \
    MPI_Wait(&request, MPI_STATUS_IGNORE);            \
    MPI_Request_free(&request);                       \
  })
#define EQUAL from, n, MPI_DOUBLE, to, n, MPI_DOUBLE
#define VARYING from, counts, at, MPI_DOUBLE, to, counts, at, MPI_DOUBLE
#define TYPED from, counts, bytes_at, types, to, counts, bytes_at, types
#define RING_V from, ring_counts, ring_at, MPI_DOUBLE, to, ring_counts, ring_at, MPI_DOUBLE
#define RING_W from, ring_counts, addresses, types, to, ring_counts, addresses, types
#define ALL_TO_ONE from, n, MPI_DOUBLE, to, counts, at, MPI_DOUBLE
#define ONE_TO_ALL from, counts, at, MPI_DOUBLE, to, n, MPI_DOUBLE
#define SUM from, to, n, MPI_DOUBLE, MPI_SUM
#define SUMS from, to, counts, MPI_DOUBLE, MPI_SUM
#define W MPI_COMM_WORLD

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(W, &rank);
  MPI_Comm_size(W, &size);
  n = atoi(argv[1]);
  const int times = atoi(argv[2]), random = argc > 3 && !strcmp(argv[3], "random");
  const char *only = argc > 4 ? argv[4] : NULL;
  char host[256];
  gethostname(host, sizeof host);
  peer = (rank + size / 2) % size;
  const size_t room = (size_t)n * (size_t)size * sizeof(double);
  from = malloc(room);
  to = malloc(room);
  srandom(1u + (unsigned)rank);
  for (size_t i = 0; i < room / sizeof(double); ++i) {
    from[i] = random ? drand48() : (double)(i / 64 % 100);
  }
  memset(to, 0, room);
  for (int i = 0; i < size; ++i) {
    counts[i] = n;
    at[i] = i * n;
    bytes_at[i] = at[i] * (int)sizeof(double);
    types[i] = MPI_DOUBLE;
  }
  for (int i = 0; i < 2; ++i) {
    ring_counts[i] = n / 2;
    ring_at[i] = i * (n / 2);
    addresses[i] = ring_at[i] * (MPI_Aint)sizeof(double);
  }
  const int periods[] = {1};
  MPI_Cart_create(W, 1, &size, periods, 0, &ring);
  MPI_Type_vector(n / 2, 1, 2, MPI_DOUBLE, &gaps);
  MPI_Type_commit(&gaps);
  // A rank may send again before its last message has left the buffer: two messages lie there.
  const int buffered = 2 * (n * (int)sizeof(double) + MPI_BSEND_OVERHEAD);
  void *attached = malloc((size_t)buffered);
  MPI_Buffer_attach(attached, buffered);

  CASE(Send, p2p(MPI_Send));
  CASE(Ssend, p2p(MPI_Ssend));
  CASE(Bsend, p2p(MPI_Bsend));
  CASE(Rsend, p2p(ready));
  CASE(Isend, start(MPI_Isend));
  CASE(Ibsend, start(MPI_Ibsend));
  CASE(Send_init, persistent(MPI_Send_init));
  CASE(Bsend_init, persistent(MPI_Bsend_init));
  CASE(Issend, {  // of a type with gaps
    MPI_Request request;
    MPI_Issend(from, 1, gaps, peer, 0, W, &request);
    MPI_Recv(to, 1, gaps, peer, 0, W, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  CASE(Sendrecv, MPI_Sendrecv(from, n, MPI_DOUBLE, peer, 0, to, n, MPI_DOUBLE, peer, 0, W,
                              MPI_STATUS_IGNORE));
  memcpy(to, from, room);
  CASE(Sendrecv_replace,
       MPI_Sendrecv_replace(to, n, MPI_DOUBLE, peer, 0, peer, 0, W, MPI_STATUS_IGNORE));

  CASE(Bcast, MPI_Bcast(from, n, MPI_DOUBLE, 0, W));
  CASE(Reduce, MPI_Reduce(SUM, 0, W));
  CASE(Allreduce, MPI_Allreduce(SUM, W));
  CASE(Reduce_scatter, MPI_Reduce_scatter(SUMS, W));
  CASE(Reduce_scatter_block, MPI_Reduce_scatter_block(SUM, W));
  CASE(Allgather, MPI_Allgather(EQUAL, W));
  CASE(Allgatherv, MPI_Allgatherv(ALL_TO_ONE, W));
  CASE(Gather, MPI_Gather(EQUAL, 0, W));
  CASE(Gatherv, MPI_Gatherv(ALL_TO_ONE, 0, W));
  CASE(Scatter, MPI_Scatter(EQUAL, 0, W));
  CASE(Scatterv, MPI_Scatterv(ONE_TO_ALL, 0, W));
  CASE(Alltoall, MPI_Alltoall(EQUAL, W));
  CASE(Alltoallv, MPI_Alltoallv(VARYING, W));
  CASE(Alltoallw, MPI_Alltoallw(TYPED, W));
  CASE(Scan, MPI_Scan(SUM, W));
  CASE(Exscan, MPI_Exscan(SUM, W));
  CASE(Neighbor_allgather, MPI_Neighbor_allgather(EQUAL, ring));
  CASE(Neighbor_alltoall,
       MPI_Neighbor_alltoall(from, n / 2, MPI_DOUBLE, to, n / 2, MPI_DOUBLE, ring));
  CASE(Neighbor_alltoallv, MPI_Neighbor_alltoallv(RING_V, ring));
  CASE(Neighbor_alltoallw, MPI_Neighbor_alltoallw(RING_W, ring));

  ICASE(Ibcast, from, n, MPI_DOUBLE, 0, W);
  ICASE(Ireduce, SUM, 0, W);
  ICASE(Iallreduce, SUM, W);
  ICASE(Ireduce_scatter, SUMS, W);
  ICASE(Ireduce_scatter_block, SUM, W);
  ICASE(Iallgather, EQUAL, W);
  ICASE(Iallgatherv, ALL_TO_ONE, W);
  ICASE(Igather, EQUAL, 0, W);
  ICASE(Igatherv, ALL_TO_ONE, 0, W);
  ICASE(Iscatter, EQUAL, 0, W);
  ICASE(Iscatterv, ONE_TO_ALL, 0, W);
  ICASE(Ialltoall, EQUAL, W);
  ICASE(Ialltoallv, VARYING, W);
  ICASE(Ialltoallw, TYPED, W);
  ICASE(Ineighbor_alltoallv, RING_V, ring);
#if MPI_VERSION >= 4
  PCASE(Bcast_init, from, n, MPI_DOUBLE, 0, W);
  PCASE(Allreduce_init, SUM, W);
  PCASE(Alltoall_init, EQUAL, W);
#endif
  MPI_Win window;
  MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
  // An MPI may have no windows over the transport that it was given.
  if (!MPI_Win_create(to, (MPI_Aint)room, sizeof(double), MPI_INFO_NULL, W, &window)) {
    CASE(Put, {
      MPI_Win_fence(0, window);
      MPI_Put(from, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, window);
      MPI_Win_fence(0, window);
    });
    MPI_Win_free(&window);
  }

  int detached;
  void *nothing;
  MPI_Buffer_detach(&nothing, &detached);
  MPI_Comm_free(&ring);
  MPI_Type_free(&gaps);
  MPI_Finalize();
  free(attached);
  free(from);
  free(to);
  return 0;
}
