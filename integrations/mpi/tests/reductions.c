/* SPDX-License-Identifier: Apache-2.0
 * Reductions and messages of floats: Allreduce, Reduce to every root, Reduce_scatter with uneven
 * counts, Reduce_scatter_block; in place and not.
 *
 *   reductions exact           values whose sums are exact in every order
 *   reductions same            any values: every rank has the same bits, and rank 0 prints a hash
 *   reductions rel|abs BOUND   any values: results within BOUND of the exact ones, BOUND times the
 *                              sum of the absolute values for rel; prints the largest error seen as
 *                              a part of the bound, and whether any value changed at all */
#include <math.h>

#include "check.h"

static MPI_Comm comm;
static int rank, size;
static const char *mode;
static double bound, worst;
static long changed;

/* The last one is of many chunks, and in pieces. Where values are exact no result takes long to
 * make and to check; else fewer will do. */
#define MOST 700001
#define MOST_OF_OTHERS 200001
static int counts[] = {3, 5000, 60001, MOST};
#define N_COUNTS ((int)(sizeof counts / sizeof *counts))
static double *in, *out, *sum, *magnitude;
static float *in4, *out4;

/* What rank r has at i: small whole numbers, or numbers of many magnitudes that partly cancel. */
static double value(int r, int i) {
  if (mode[0] == 'e') return (i / 41 + r * 3) % 5 + 1;
  const unsigned x = ((unsigned)i / 3 + 77u * (unsigned)r) * 2654435761u;
  const double base = (double)(x >> 8) / (1 << 24) - 0.45;
  return i % 11 == 0 ? 0 : ldexp(base, (i / 1000) % 9 - 4);
}

static void prepare(int n) {
  for (int i = 0; i < n; ++i) {
    sum[i] = magnitude[i] = 0;
    for (int r = 0; r < size; ++r) {
      const float v = (float)value(r, i);
      sum[i] += v;
      magnitude[i] += fabs(v);
    }
    in4[i] = (float)value(rank, i);
    in[i] = in4[i];
  }
}

static void judge(int i, double got, double precision) {
  const double error = fabs(got - sum[i]);
  if (mode[0] == 'e') {
    CHECK(error == 0);
  } else if (mode[0] == 's') {
    CHECK(error <= precision * size * magnitude[i]);
  } else {
    const double most = mode[0] == 'r' ? bound * magnitude[i] : bound;
    CHECK(error <= most + precision * size * magnitude[i]);
    if (most > 0 && error / most > worst) worst = error / most;
    changed += error > precision * size * magnitude[i];
  }
}

static void judge_all(int first, int n, const void *data, MPI_Datatype type) {
  for (int i = 0; i < n; ++i) {
    if (type == MPI_DOUBLE)
      judge(first + i, ((const double *)data)[i], 0x1p-52);
    else
      judge(first + i, ((const float *)data)[i], 0x1p-23);
  }
}

static unsigned long long hash_of(const void *data, size_t n) {
  unsigned long long hash = 1469598103934665603u;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return hash;
}

static unsigned long long total_hash;

static void same_everywhere(const void *data, size_t n) {
  unsigned long long mine = hash_of(data, n), first = mine;
  MPI_Bcast(&first, 1, MPI_UNSIGNED_LONG_LONG, 0, comm);
  CHECK(first == mine);
  total_hash = total_hash * 31 + mine;
}

static void allreduces(int n, MPI_Datatype type, const void *mine, void *result, size_t element) {
  MPI_Allreduce(mine, result, n, type, MPI_SUM, comm);
  judge_all(0, n, result, type);
  same_everywhere(result, (size_t)n * element);
  memcpy(result, mine, (size_t)n * element);
  MPI_Allreduce(MPI_IN_PLACE, result, n, type, MPI_SUM, comm);
  judge_all(0, n, result, type);
  same_everywhere(result, (size_t)n * element);
}

static void reduces(int n, MPI_Datatype type, const void *mine, void *result, size_t element) {
  for (int root = 0; root < size; ++root) {
    memset(result, 0xEE, (size_t)n * element);
    MPI_Reduce(mine, rank == root ? result : NULL, n, type, MPI_SUM, root, comm);
    if (rank == root) judge_all(0, n, result, type);
    if (rank != root) CHECK(all_bytes(result, (size_t)n * element, 0xEE));
    if (root > 0) continue; /* MPICH 4.0.2 itself dies of MPI_IN_PLACE there */
    memcpy(result, mine, (size_t)n * element);
    if (rank == root)
      MPI_Reduce(MPI_IN_PLACE, result, n, type, MPI_SUM, root, comm);
    else
      MPI_Reduce(result, NULL, n, type, MPI_SUM, root, comm);
    if (rank == root) judge_all(0, n, result, type);
    if (rank != root) CHECK(memcmp(result, mine, (size_t)n * element) == 0);
  }
}

static void scatters(int n, MPI_Datatype type, const void *mine, void *result, size_t element) {
  int parts[64], begin = 0;
  for (int r = 0, left = n; r < size; ++r) {
    parts[r] = r == size - 1 ? left : r == 1 ? 0 : left / 2;
    left -= parts[r];
    if (r < rank) begin += parts[r];
  }
  memset(result, 0xEE, (size_t)n * element);
  MPI_Reduce_scatter(mine, result, parts, type, MPI_SUM, comm);
  judge_all(begin, parts[rank], result, type);
  CHECK(all_bytes((unsigned char *)result + (size_t)parts[rank] * element,
                  (size_t)(n - parts[rank]) * element, 0xEE));
#ifndef MPICH_VERSION /* 4.0.2 itself dies of it: "memory ranges overlap" */
  memcpy(result, mine, (size_t)n * element);
  MPI_Reduce_scatter(MPI_IN_PLACE, result, parts, type, MPI_SUM, comm);
  judge_all(begin, parts[rank], result, type);
#endif
  const int block = n / size;
  if (block == 0) return;
  MPI_Reduce_scatter_block(mine, result, block, type, MPI_SUM, comm);
  judge_all(rank * block, block, result, type);
  memcpy(result, mine, (size_t)n * element);
  MPI_Reduce_scatter_block(MPI_IN_PLACE, result, block, type, MPI_SUM, comm);
  judge_all(rank * block, block, result, type);
}

static void near(double got, double wanted) {
  const double most = mode[0] == 'r' ? bound * fabs(wanted) : mode[0] == 'a' ? bound : 0;
  CHECK(fabs(got - wanted) <= most);
}

/* Values that only travel: floats within the bound, everything else as it was. */
static void moves(int n) {
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Sendrecv(in4, n, MPI_FLOAT, to, 1, out4, n, MPI_FLOAT, from, 1, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) near(out4[i], (float)value(from, i));
  MPI_Sendrecv(in, n, MPI_DOUBLE, to, 1, out, n, MPI_DOUBLE, from, 1, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) near(out[i], (float)value(from, i));
  MPI_Sendrecv(in4, n, MPI_INT, to, 1, out4, n, MPI_INT, from, 1, comm, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) CHECK(out4[i] == (float)value(from, i));
  MPI_Sendrecv(in4, 4 * n, MPI_BYTE, to, 1, out4, 4 * n, MPI_BYTE, from, 1, comm,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) CHECK(out4[i] == (float)value(from, i));
  memcpy(out4, in4, (size_t)n * sizeof *in4);
  MPI_Bcast(out4, n, MPI_FLOAT, size - 1, comm);
  for (int i = 0; i < n; ++i) near(out4[i], (float)value(size - 1, i));
  const int part = n / size;
  MPI_Allgather(in4, part, MPI_FLOAT, out4, part, MPI_FLOAT, comm);
  for (int i = 0; i < part * size; ++i) near(out4[i], (float)value(i / part, i % part));
  same_everywhere(out4, (size_t)(part * size) * sizeof *out4);
}

/* The largest of all, and products: a bound on these is kept, or nothing changes. */
static void other_operations(int n) {
  MPI_Allreduce(in4, out4, n, MPI_FLOAT, MPI_MAX, comm);
  for (int i = 0; i < n; ++i) {
    double most = -1e9, magnitude_of_most = 0;
    for (int r = 0; r < size; ++r) {
      most = fmax(most, (float)value(r, i));
      magnitude_of_most = fmax(magnitude_of_most, fabs((float)value(r, i)));
    }
    const double allowed = mode[0] == 'r' ? bound * magnitude_of_most : bound;
    CHECK(fabs(out4[i] - most) <= allowed);
  }
  MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_PROD, comm);
  for (int i = 0; i < n; ++i) {
    double product = 1;
    for (int r = 0; r < size; ++r) product *= (float)value(r, i);
    CHECK(fabs(out[i] - product) <= 1e-14 * fabs(product));
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  comm = MPI_COMM_WORLD;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  mode = argc > 1 ? argv[1] : "exact";
  bound = argc > 2 ? atof(argv[2]) : 0;
  if (mode[0] != 'e') counts[N_COUNTS - 1] = MOST_OF_OTHERS;
  in = malloc(MOST * sizeof *in), out = malloc(MOST * sizeof *out);
  sum = malloc(MOST * sizeof *sum), magnitude = malloc(MOST * sizeof *magnitude);
  in4 = malloc(MOST * sizeof *in4), out4 = malloc(MOST * sizeof *out4);
  for (int k = 0; k < N_COUNTS; ++k) {
    const int n = counts[k];
    prepare(n);
    allreduces(n, MPI_DOUBLE, in, out, sizeof *in);
    allreduces(n, MPI_FLOAT, in4, out4, sizeof *in4);
    reduces(n, MPI_FLOAT, in4, out4, sizeof *in4);
    scatters(n, MPI_FLOAT, in4, out4, sizeof *in4);
    scatters(n, MPI_DOUBLE, in, out, sizeof *in);
    moves(n);
    if (mode[0] != 's') other_operations(n);
  }
  if (rank == 0 && mode[0] == 's') printf("hash %016llx\n", total_hash);
  if (mode[0] == 'e' || mode[0] == 's') bound = 0;
  if (rank == 0 && (mode[0] == 'r' || mode[0] == 'a'))
    printf("worst %.4f of the bound, %ld changed\n", worst, changed);
  if (rank == 0) printf("ok %s\n", mode);
  free(in), free(out), free(sum), free(magnitude), free(in4), free(out4);
  MPI_Finalize();
  return 0;
}
