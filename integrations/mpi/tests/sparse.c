/* SPDX-License-Identifier: Apache-2.0
 * Allreduce of mostly zeros, which two nodes send each other whole, beside plain MPI's: several
 * types and operations, in place and not, signed zeros and NaNs among them, and calls in which some
 * ranks' data do not shrink: sparse */
#include <math.h>

#include "check.h"

enum { N = 500003, CALLS = 4 };
static int rank, size;

/* Of 32 rows of 32 one has numbers; of a dense vector all have. */
static double value(int i, int dense) {
  const unsigned row = (unsigned)i / 32 + 1000u * (unsigned)rank;
  if (!dense && row * 2654435761u >> 27 != 0) return 0;
  const unsigned x = ((unsigned)i + 77u * (unsigned)rank) * 2654435761u;
  if (x % 61 == 0) return -0.0;
  return (double)(x >> 8) / (1 << 20) - 8;
}

static void fill_with(void *data, MPI_Datatype type, int dense) {
  for (int i = 0; i < N; ++i) {
    const double v = value(i, dense);
    if (type == MPI_FLOAT) ((float *)data)[i] = (float)v;
    if (type == MPI_DOUBLE) ((double *)data)[i] = v;
    if (type == MPI_INT) ((int *)data)[i] = (int)(100 * v);
  }
  /* NaNs where the other ranks have zeros or numbers. */
  if (type == MPI_FLOAT && rank == 0) ((float *)data)[N / 2] = ((float *)data)[N - 1] = NAN;
}

static void same_as_plain(MPI_Datatype type, MPI_Op op, int element, int dense) {
  const size_t bytes = (size_t)N * (size_t)element;
  char *in = malloc(bytes), *out = malloc(bytes), *wanted = malloc(bytes), *first = malloc(bytes);
  fill_with(in, type, dense);
  PMPI_Allreduce(in, wanted, N, type, op, MPI_COMM_WORLD);
  for (int call = 0; call < CALLS; ++call) {
    const int in_place = call % 2;
    memset(out, 0xEE, bytes);
    if (in_place) memcpy(out, in, bytes);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, N, type, op, MPI_COMM_WORLD);
    /* Of two ranks any order gives the same; of more, sums differ in their last bits. */
    if (size == 2 || type == MPI_INT || op == MPI_MAX) CHECK(memcmp(out, wanted, bytes) == 0);
    if (rank == 0) memcpy(first, out, bytes);
    PMPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(memcmp(out, first, bytes) == 0);
  }
  free(in), free(out), free(wanted), free(first);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  same_as_plain(MPI_FLOAT, MPI_SUM, 4, 0);
  same_as_plain(MPI_DOUBLE, MPI_SUM, 8, 0);
  same_as_plain(MPI_INT, MPI_SUM, 4, 0);
  same_as_plain(MPI_INT, MPI_MAX, 4, 0);
  if (argc > 1) same_as_plain(MPI_FLOAT, MPI_SUM, 4, rank == 0); /* "mixed": one rank is dense */
  if (rank == 0) printf("ok sparse\n");
  MPI_Finalize();
  return 0;
}
