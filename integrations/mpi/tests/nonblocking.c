/* SPDX-License-Identifier: Apache-2.0
 * Non-blocking and persistent collectives, those of neighbours, and prefix sums: many at a time,
 * mixed with blocking ones and messages, completed by every kind of Wait and Test. */
#include "check.h"

static MPI_Comm comm;
static int rank, size;

#define MANY 18
#define MOST 60000 /* ints of a vector; several times the threshold */
static int *from[MANY], *to[MANY];
static MPI_Request request[MANY];
static int counts[64], at[64], bytes_at[64];
static MPI_Datatype types[64];

/* Element i of rank r in call k: small, and alike for a while. */
#define VALUE(k, r, i) (((i) / 50 + (r)*7 + (k)) % 1000)
#define PART (MOST / size)

static void sizes(void) {
  int begin = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r % 3 == 1 ? PART / 5 : PART;
    at[r] = begin;
    bytes_at[r] = begin * 4;
    types[r] = MPI_INT;
    begin += counts[r];
  }
}

static int sum(int k, int i, int upto) {
  int s = 0;
  for (int r = 0; r < upto; ++r) s += VALUE(k, r, i);
  return s;
}

/* Starts call k. */
static void start(int k, int root) {
  for (int i = 0; i < MOST; ++i) from[k][i] = VALUE(k, rank, i);
  memset(to[k], 0xEE, MOST * 4);
  int *f = from[k], *t = to[k];
  MPI_Request *q = &request[k];
  const int n = PART;
  switch (k) {
    case 0:
      if (rank == root) memcpy(t, f, MOST * 4);
      MPI_Ibcast(t, MOST, MPI_INT, root, comm, q);
      break;
    case 1:
      MPI_Igather(f, n, MPI_INT, rank == root ? t : NULL, n, MPI_INT, root, comm, q);
      break;
    case 2:
      MPI_Igatherv(f, counts[rank], MPI_INT, t, counts, at, MPI_INT, root, comm, q);
      break;
    case 3:
      MPI_Iscatter(f, n, MPI_INT, t, n, MPI_INT, root, comm, q);
      break;
    case 4:
      MPI_Iscatterv(f, counts, at, MPI_INT, t, counts[rank], MPI_INT, root, comm, q);
      break;
    case 5:
      MPI_Iallgather(f, n, MPI_INT, t, n, MPI_INT, comm, q);
      break;
    case 6:
      MPI_Iallgatherv(f, counts[rank], MPI_INT, t, counts, at, MPI_INT, comm, q);
      break;
    case 7:
      MPI_Ialltoall(f, n, MPI_INT, t, n, MPI_INT, comm, q);
      break;
    case 8:
    case 9: {
      static int sent[64], sent_at[64], sent_bytes[64];
      for (int r = 0; r < size; ++r) {
        sent[r] = counts[rank];
        sent_at[r] = r * PART;
        sent_bytes[r] = r * PART * 4;
      }
      if (k == 8)
        MPI_Ialltoallv(f, sent, sent_at, MPI_INT, t, counts, at, MPI_INT, comm, q);
      else
        MPI_Ialltoallw(f, sent, sent_bytes, types, t, counts, bytes_at, types, comm, q);
      break;
    }
    case 10:
      MPI_Ireduce(f, rank == root ? t : NULL, MOST, MPI_INT, MPI_SUM, root, comm, q);
      break;
    case 11:
      MPI_Iallreduce(f, t, MOST, MPI_INT, MPI_SUM, comm, q);
      break;
    case 12:
      memcpy(t, f, MOST * 4);
      MPI_Iallreduce(MPI_IN_PLACE, t, MOST, MPI_INT, MPI_SUM, comm, q);
      break;
    case 13:
      MPI_Ireduce_scatter(f, t, counts, MPI_INT, MPI_SUM, comm, q);
      break;
    case 14:
      MPI_Ireduce_scatter_block(f, t, n, MPI_INT, MPI_SUM, comm, q);
      break;
    case 15:
      MPI_Iscan(f, t, MOST, MPI_INT, MPI_SUM, comm, q);
      break;
    case 16:
      MPI_Iexscan(f, t, MOST, MPI_INT, MPI_SUM, comm, q);
      break;
    default: /* a small one among them */
      MPI_Iallreduce(f, t, 3, MPI_INT, MPI_SUM, comm, q);
  }
}

static void check(int k, int root) {
  const int *t = to[k];
  const int n = PART;
  for (int i = 0; i < MOST; ++i) {
    const int r = i / n;
    switch (k) {
      case 0:
        CHECK(t[i] == VALUE(k, root, i));
        break;
      case 1:
        if (r < size && rank == root) CHECK(t[i] == VALUE(k, r, i % n));
        break;
      case 3:
        if (i < n) CHECK(t[i] == VALUE(k, root, rank * n + i));
        break;
      case 5:
        if (r < size) CHECK(t[i] == VALUE(k, r, i % n));
        break;
      case 7:
        if (r < size) CHECK(t[i] == VALUE(k, r, rank * n + i % n));
        break;
      case 10:
        if (rank == root) CHECK(t[i] == sum(k, i, size));
        break;
      case 11:
      case 12:
        CHECK(t[i] == sum(k, i, size));
        break;
      case 14:
        if (i < n) CHECK(t[i] == sum(k, rank * n + i, size));
        break;
      case 15:
        CHECK(t[i] == sum(k, i, rank + 1));
        break;
      case 16:
        if (rank) CHECK(t[i] == sum(k, i, rank));
        break;
      case 17:
        if (i < 3) CHECK(t[i] == sum(k, i, size));
        break;
      default:
        break;
    }
  }
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < counts[r]; ++i) {
      if (k == 2 && rank == root) CHECK(t[at[r] + i] == VALUE(k, r, i));
      if (k == 4 && r == rank) CHECK(t[i] == VALUE(k, root, at[r] + i));
      if (k == 6) CHECK(t[at[r] + i] == VALUE(k, r, i));
      if (k == 8 || k == 9) CHECK(t[at[r] + i] == VALUE(k, r, rank * n + i));
      if (k == 13 && r == rank) CHECK(t[i] == sum(k, at[r] + i, size));
    }
  }
  CHECK(request[k] == MPI_REQUEST_NULL);
}

/* All at once, mixed with messages, completed in the given way. */
static void at_once(int way, int root) {
  for (int k = 0; k < MANY; ++k) start(k, root);
  int got = -1, one = rank;
  MPI_Request message[2];
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 5, comm, &message[0]);
  MPI_Isend(&one, 1, MPI_INT, (rank + 1) % size, 5, comm, &message[1]);
  int flag = 0, index, n_done, indices[MANY];
  MPI_Status status, statuses[MANY];
  switch (way) {
    case 0:
      MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
      break;
    case 1:
      for (int k = MANY - 1; k >= 0; --k) MPI_Wait(&request[k], &status);
      break;
    case 2:
      for (int k = 0; k < MANY; ++k) MPI_Waitany(MANY, request, &index, &status);
      break;
    case 3:
      for (int k = 0; k < MANY; k += n_done)
        MPI_Waitsome(MANY, request, &n_done, indices, statuses);
      break;
    case 4:
      while (!flag) MPI_Testall(MANY, request, &flag, statuses);
      break;
    case 5:
      for (int k = 0; k < MANY; ++k) {
        for (flag = 0; !flag;) MPI_Request_get_status(request[k], &flag, &status);
        CHECK(request[k] != MPI_REQUEST_NULL);
        for (flag = 0; !flag;) MPI_Test(&request[k], &flag, MPI_STATUS_IGNORE);
      }
      break;
    case 6:
      for (int k = 0; k < MANY; k += flag) MPI_Testany(MANY, request, &index, &flag, &status);
      break;
    default:
      for (int k = 0; k < MANY; k += n_done)
        MPI_Testsome(MANY, request, &n_done, indices, statuses);
  }
  MPI_Waitall(2, message, MPI_STATUSES_IGNORE);
  CHECK(got == (rank + size - 1) % size);
  for (int k = 0; k < MANY; ++k) check(k, root);
}

/* Blocking collectives while others are under way, and one that late ranks come to. */
static void among_blocking(void) {
  static int big[MOST];
  start(11, 0);
  for (int i = 0; i < MOST; ++i) big[i] = i / 100 + rank;
  MPI_Bcast(big, MOST, MPI_INT, size - 1, comm);
  for (int i = 0; i < MOST; ++i) CHECK(big[i] == i / 100 + size - 1);
  start(6, 0);
  MPI_Barrier(comm);
  MPI_Allreduce(MPI_IN_PLACE, big, MOST, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < MOST; ++i) CHECK(big[i] == (i / 100 + size - 1) * size);
  MPI_Wait(&request[6], MPI_STATUS_IGNORE);
  MPI_Wait(&request[11], MPI_STATUS_IGNORE);
  check(6, 0), check(11, 0);
  /* Rank 0 calls it only after a message that the others send after they called it. */
  int token = 0;
  if (rank == 0)
    for (int r = 1; r < size; ++r) MPI_Recv(&token, 1, MPI_INT, r, 6, comm, MPI_STATUS_IGNORE);
  start(11, 0);
  if (rank) MPI_Send(&token, 1, MPI_INT, 0, 6, comm);
  MPI_Wait(&request[11], MPI_STATUS_IGNORE);
  check(11, 0);
}

/* On a ring each rank has two neighbours: the one before and the one behind. */
static void neighbors(void) {
  MPI_Comm ring, kept = comm;
  int periodic = 1, n = MOST / 4, two[2] = {n, n / 2}, places[2] = {0, n};
  MPI_Cart_create(comm, 1, &size, &periodic, 0, &ring);
  comm = ring;
  int *f = from[0], *t = to[0];
  for (int i = 0; i < 2 * n; ++i) f[i] = VALUE(0, rank, i);
  const int before = (rank + size - 1) % size, behind = (rank + 1) % size;
  MPI_Aint places_in_bytes[2] = {0, (MPI_Aint)n * 4};
  MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
  for (int way = 0; way < 10; ++way) {
    memset(t, 0xEE, MOST * 4);
    MPI_Request q = MPI_REQUEST_NULL;
    if (way == 0) MPI_Neighbor_allgather(f, n, MPI_INT, t, n, MPI_INT, ring);
    if (way == 1) MPI_Ineighbor_allgather(f, n, MPI_INT, t, n, MPI_INT, ring, &q);
    two[1] = n;
    if (way == 2) MPI_Neighbor_allgatherv(f, n, MPI_INT, t, two, places, MPI_INT, ring);
    if (way == 3) MPI_Ineighbor_allgatherv(f, n, MPI_INT, t, two, places, MPI_INT, ring, &q);
    if (way == 4) MPI_Neighbor_alltoall(f, n, MPI_INT, t, n, MPI_INT, ring);
    if (way == 5) MPI_Ineighbor_alltoall(f, n, MPI_INT, t, n, MPI_INT, ring, &q);
    if (way == 6) MPI_Neighbor_alltoallv(f, two, places, MPI_INT, t, two, places, MPI_INT, ring);
    if (way == 7)
      MPI_Ineighbor_alltoallv(f, two, places, MPI_INT, t, two, places, MPI_INT, ring, &q);
    if (way == 8)
      MPI_Neighbor_alltoallw(f, two, places_in_bytes, ints, t, two, places_in_bytes, ints, ring);
    if (way == 9)
      MPI_Ineighbor_alltoallw(f, two, places_in_bytes, ints, t, two, places_in_bytes, ints, ring,
                              &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    /* With two ranks both neighbours are the same one, and what goes where is not so clear. */
    for (int i = 0; i < n && (way < 4 || size > 2); ++i) {
      CHECK(t[i] == VALUE(0, before, way < 4 ? i : n + i));
      CHECK(t[n + i] == VALUE(0, behind, i));
    }
  }
  MPI_Comm_free(&ring);
  comm = kept;
}

static void prefixes(void) {
  for (int i = 0; i < MOST; ++i) from[0][i] = VALUE(0, rank, i);
  MPI_Scan(from[0], to[0], MOST, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < MOST; ++i) CHECK(to[0][i] == sum(0, i, rank + 1));
  MPI_Exscan(from[0], to[0], MOST, MPI_INT, MPI_SUM, comm);
  for (int i = 0; rank && i < MOST; ++i) CHECK(to[0][i] == sum(0, i, rank));
}

static void persistent(void) {
#if MPI_VERSION >= 4
  MPI_Request q[3];
  MPI_Allreduce_init(from[11], to[11], MOST, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &q[0]);
  MPI_Bcast_init(to[0], MOST, MPI_INT, 0, comm, MPI_INFO_NULL, &q[1]);
  MPI_Alltoallv_init(from[8], counts, at, MPI_INT, to[8], counts, at, MPI_INT, comm, MPI_INFO_NULL,
                     &q[2]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < MOST; ++i) {
      from[11][i] = VALUE(11 + round, rank, i);
      to[0][i] = VALUE(round, rank, i);
    }
    MPI_Startall(2, q);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MOST; ++i) {
      CHECK(to[11][i] == sum(11 + round, i, size));
      CHECK(to[0][i] == VALUE(round, 0, i));
    }
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&q[i]);
#endif
}

static void all(const char *name) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  sizes();
  for (int way = 0; way < 8; ++way) at_once(way, way % size);
  among_blocking();
  neighbors();
  prefixes();
  persistent();
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  if (world == 0) printf("ok %s\n", name), fflush(stdout);
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  int told;
  MPI_Query_thread(&told);
  CHECK(told == provided);
  for (int k = 0; k < MANY; ++k) {
    from[k] = malloc(MOST * 4), to[k] = malloc(MOST * 4);
    request[k] = MPI_REQUEST_NULL;
  }
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  comm = MPI_COMM_WORLD;
  all("world");
  MPI_Comm_split(MPI_COMM_WORLD, 0, (world * 5 + 3) % 4, &comm); /* nodes interleaved */
  all("shuffled");
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
