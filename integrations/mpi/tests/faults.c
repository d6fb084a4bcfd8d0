/* SPDX-License-Identifier: Apache-2.0
 * Programs that something happens to.
 *
 *   faults killed          rank 1 dies while rank 0 sends it a large message
 *   faults unreceived N    rank 0 frees the request of N bytes that rank 1 never receives
 *   faults memory WHEN BYTES N   messages and collectives of N ints; "start" or "later" memory.c
 *                          refuses what has so many bytes or more */
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

/* ---- memory is refused, and errors are returned: what succeeds is right, what fails says why ----
 */

enum { SURE, MAY_FAIL }; /* SURE: what has no memory goes raw, or is left to MPI */
static int size, failed;

static int fine(int line, int error, int how) {
  int class, length;
  MPI_Error_class(error, &class);
  const int said = class == MPI_ERR_NO_MEM || class == MPI_ERR_OTHER;
  if (class != MPI_SUCCESS && !(how == MAY_FAIL && said)) {
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "rank %d: line %d: %s\n", rank, line, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  failed += class != MPI_SUCCESS;
  return class == MPI_SUCCESS;
}

static int value(int rank_of, int i) { return i / 300 % 1000 + rank_of; }
static int sum(int i) { return size * (i / 300 % 1000) + size * (size - 1) / 2; }

/* Every second of the ints at x: type and buffer, of n. */
static MPI_Datatype gaps(int n) {
  MPI_Datatype type;
  MPI_Type_vector(n, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static void reductions(int n, int *in, int *out) {
  for (int i = 0; i < n; ++i) in[i] = value(rank, i);
  if (fine(__LINE__, MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < n; ++i) CHECK(out[i] == sum(i));
  memcpy(out, in, (size_t)n * sizeof *in);
  if (fine(__LINE__, MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < n; ++i) CHECK(out[i] == sum(i));
  for (int root = 0; root < size; root += size - 1) {
    if (fine(__LINE__, MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD), SURE) &&
        rank == root)
      for (int i = 0; i < n; ++i) CHECK(out[i] == sum(i));
  }
  const int part = n / size;
  if (fine(__LINE__, MPI_Reduce_scatter_block(in, out, part, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
           SURE))
    for (int i = 0; i < part; ++i) CHECK(out[i] == sum(rank * part + i));
}

static void broadcasts(int n, int *out) {
  MPI_Datatype type = gaps(n);
  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < 2 * n; ++i) out[i] = rank == root ? value(root, i) : -1;
    if (fine(__LINE__, MPI_Bcast(out, n, MPI_INT, root, MPI_COMM_WORLD), SURE))
      for (int i = 0; i < n; ++i) CHECK(out[i] == value(root, i));
    /* A root without memory for what it has to pack: it and all others say so. */
    for (int i = 0; i < 2 * n; ++i) out[i] = rank == root ? value(root, i) : -1;
    if (fine(__LINE__, MPI_Bcast(out, 1, type, root, MPI_COMM_WORLD), MAY_FAIL))
      for (int i = 0; i < n; ++i) CHECK(out[2 * i] == value(root, 2 * i));
  }
  MPI_Type_free(&type);
}

static void gathers(int n, int *in, int *out) {
  const int part = n / size;
  int counts[16], begins[16];
  MPI_Datatype type = gaps(part);
  MPI_Datatype spaced;
  MPI_Type_create_resized(type, 0, 2 * part * (MPI_Aint)sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  for (int r = 0; r < size; ++r) counts[r] = part, begins[r] = r * part;
  for (int i = 0; i < part; ++i) in[i] = value(rank, i);
  if (fine(__LINE__, MPI_Allgather(in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < n; ++i) CHECK(out[i] == value(i / part, i % part));
  if (fine(__LINE__,
           MPI_Allgatherv(in, part, MPI_INT, out, counts, begins, MPI_INT, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < n; ++i) CHECK(out[i] == value(i / part, i % part));
  if (fine(__LINE__, MPI_Allgather(in, part, MPI_INT, out, 1, spaced, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < n; ++i) CHECK(out[2 * i] == value(i / part, i % part));
  if (fine(__LINE__, MPI_Gather(in, part, MPI_INT, out, 1, spaced, 1, MPI_COMM_WORLD), MAY_FAIL) &&
      rank == 1)
    for (int i = 0; i < n; ++i) CHECK(out[2 * i] == value(i / part, i % part));
  for (int i = 0; i < 2 * n; ++i) in[i] = value(rank, i);
  if (fine(__LINE__, MPI_Scatter(in, 1, spaced, out, part, MPI_INT, 1, MPI_COMM_WORLD), SURE))
    for (int i = 0; i < part; ++i) CHECK(out[i] == value(1, 2 * (rank * part + i)));
  if (fine(__LINE__, MPI_Alltoall(in, part, MPI_INT, out, 1, spaced, MPI_COMM_WORLD), MAY_FAIL))
    for (int i = 0; i < n; ++i) CHECK(out[2 * i] == value(i / part, rank * part + i % part));
  memcpy(out, in, (size_t)n * sizeof *in);
  if (fine(__LINE__, MPI_Alltoall(MPI_IN_PLACE, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD),
           MAY_FAIL))
    for (int i = 0; i < n; ++i) CHECK(out[i] == value(i / part, rank * part + i % part));
  MPI_Type_free(&spaced);
  MPI_Type_free(&type);
}

static void messages(int n, int *in, int *out) {
  for (int i = 0; i < n; ++i) in[i] = value(rank, i), out[i] = -1;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  if (fine(__LINE__,
           MPI_Sendrecv(in, n, MPI_INT, to, 0, out, n, MPI_INT, from, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE),
           MAY_FAIL))
    for (int i = 0; i < n; ++i) CHECK(out[i] == value(from, i));
}

/* From the start, or after calls that had memory; what is refused has so many bytes or more. */
static void memory(const char *when, const char *refused, int n) {
  int *in = malloc((size_t)n * 2 * sizeof *in), *out = malloc((size_t)n * 2 * sizeof *out);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!strcmp(when, "later")) reductions(1 << 17, in, out);
  setenv("MEMORY_REFUSED", refused, 1);
  for (int round = 0; round < 2; ++round) {
    messages(n, in, out);
    reductions(n, in, out);
    broadcasts(n, out);
    gathers(n, in, out);
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
  if (!strcmp(argv[1], "memory")) memory(argv[2], argv[3], atoi(argv[4]));
  MPI_Finalize();
  printf("ok faults\n");
  return 0;
}
