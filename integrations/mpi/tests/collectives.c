/* SPDX-License-Identifier: Apache-2.0
 * Collectives: every predefined operation on every type against the same sum made by hand, where
 * the order of a sum does not matter, and against a second run bit for bit. Sizes from below the
 * threshold to several chunks. */
#include <complex.h>
#include <float.h>
#include <stdbool.h>

#include "check.h"

static MPI_Comm comm;
static int rank, size;

#define KIB 1024
#define ROOM (8u << 20)
static unsigned char *in, *out, *want, *again;

static const int counts[] = {1, 1000, 40000, 100003, 300000};
#define N_COUNTS ((int)(sizeof counts / sizeof *counts))

static void bcasts(void) {
  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < N_COUNTS; ++i) {
      const size_t n = (size_t)counts[i] * 4;
      const int kind = (root + i) % 3 == 2 ? NOISE : TEXT;
      memset(out, 0xEE, n + 8);
      if (rank == root) fill(out, n, kind, (unsigned)root);
      MPI_Bcast(out, counts[i], MPI_FLOAT, root, comm);
      CHECK(filled(out, n, kind, (unsigned)root) && all_bytes(out + n, 8, 0xEE));
    }
  }
}

/* Each rank describes the same bytes in its own way. */
static void mixed_bcasts(void) {
  const int blocks = 6000;
  MPI_Datatype vector, contiguous;
  MPI_Type_vector(blocks, 4, 8, MPI_INT, &vector);
  MPI_Type_contiguous(4, MPI_INT, &contiguous);
  MPI_Type_commit(&vector);
  MPI_Type_commit(&contiguous);
  for (int root = 0; root < size; ++root) {
    int *data = (int *)out;
    memset(out, 0xEE, (size_t)blocks * 32);
    const int strided = rank % 3 == 1;
    if (rank == root)
      for (int i = 0; i < blocks * 4; ++i) data[strided ? i / 4 * 8 + i % 4 : i] = i / 50 + root;
    if (rank % 3 == 0) MPI_Bcast(data, blocks * 4, MPI_INT, root, comm);
    if (rank % 3 == 1) MPI_Bcast(data, 1, vector, root, comm);
    if (rank % 3 == 2) MPI_Bcast(data, blocks, contiguous, root, comm);
    for (int i = 0; i < blocks * 4; ++i)
      CHECK(data[strided ? i / 4 * 8 + i % 4 : i] == i / 50 + root);
    if (strided) CHECK(data[4] == (int)0xEEEEEEEE);
  }
  MPI_Type_free(&vector);
  MPI_Type_free(&contiguous);
}

/* Element i of rank r: small numbers, so that every order of adding gives the same float. */
#define ELEMENT(r, i) (((i) / 41 + (r)*3) % 5 + 1)

/* Of each element the first bytes are its value: a long double of 80 bits has some more. */
static int same(const void *a, const void *b, int n, size_t element, size_t value) {
  if (value == element) return memcmp(a, b, (size_t)n * element) == 0;
  for (size_t i = 0; i < (size_t)n * element; i += element)
    if (memcmp((const char *)a + i, (const char *)b + i, value) != 0) return 0;
  return 1;
}

static void expect(int good, const char *name, int n, const char *call) {
  if (!good) fprintf(stderr, "rank %d: %s of %d elements by %s\n", rank, name, n, call);
  CHECK(good);
}

/* What each rank has stands at `in`, and what is to come of all at `want`. */
static void reduce(const char *name, int n, size_t element, size_t value, MPI_Datatype type,
                   MPI_Op op) {
  const size_t bytes = (size_t)n * element;
  memcpy(again, in, bytes);
  memset(out, 0xEE, bytes + 16);
  MPI_Allreduce(in, out, n, type, op, comm);
  expect(same(out, want, n, element, value), name, n, "Allreduce");
  expect(all_bytes(out + bytes, 16, 0xEE), name, n, "Allreduce, behind the end");
  expect(memcmp(in, again, bytes) == 0, name, n, "Allreduce, which wrote to what is sent");
  memcpy(out, in, bytes);
  MPI_Allreduce(MPI_IN_PLACE, out, n, type, op, comm);
  expect(same(out, want, n, element, value), name, n, "Allreduce in place");
  const int block = n / size;
  if (block == 0) return;
  const unsigned char *mine = want + (size_t)rank * (size_t)block * element;
  memset(out, 0xEE, (size_t)block * element + 16);
  MPI_Reduce_scatter_block(in, out, block, type, op, comm);
  expect(same(out, mine, block, element, value), name, n, "Reduce_scatter_block");
  expect(all_bytes(out + (size_t)block * element, 16, 0xEE), name, n,
         "Reduce_scatter_block, behind the end");
  memcpy(out, in, bytes);
  MPI_Reduce_scatter_block(MPI_IN_PLACE, out, block, type, op, comm);
  expect(same(out, mine, block, element, value), name, n, "Reduce_scatter_block in place");
}

#define VALUE(T) \
  (__builtin_types_compatible_p(T, long double) && LDBL_MANT_DIG == 64 ? 10 : sizeof(T))

#define REDUCE(T, MPI_T, OP, EXPRESSION)                      \
  for (int k = 0; k < N_COUNTS; ++k) {                        \
    const int n = counts[k];                                  \
    T *mine = (T *)in, *expected = (T *)want;                 \
    for (int i = 0; i < n; ++i) {                             \
      mine[i] = (T)ELEMENT(rank, i);                          \
      T a = (T)ELEMENT(0, i);                                 \
      for (int r = 1; r < size; ++r) {                        \
        T b = (T)ELEMENT(r, i);                               \
        a = (T)(EXPRESSION);                                  \
      }                                                       \
      expected[i] = a;                                        \
    }                                                         \
    reduce(#OP " of " #T, n, sizeof(T), VALUE(T), MPI_T, OP); \
  }

#define NUMBERS(T, M)                  \
  REDUCE(T, M, MPI_SUM, a + b)         \
  REDUCE(T, M, MPI_MAX, a > b ? a : b) \
  REDUCE(T, M, MPI_MIN, a < b ? a : b) \
  REDUCE(T, M, MPI_PROD, a *b)
#define INTEGERS(T, M)             \
  NUMBERS(T, M)                    \
  REDUCE(T, M, MPI_LAND, a &&b)    \
  REDUCE(T, M, MPI_LOR, a || b)    \
  REDUCE(T, M, MPI_LXOR, !a != !b) \
  REDUCE(T, M, MPI_BAND, a &b)     \
  REDUCE(T, M, MPI_BOR, a | b)     \
  REDUCE(T, M, MPI_BXOR, a ^ b)

static void reductions(void) {
  INTEGERS(int8_t, MPI_INT8_T)
  INTEGERS(uint8_t, MPI_UINT8_T)
  INTEGERS(int16_t, MPI_SHORT)
  INTEGERS(int32_t, MPI_INT)
  INTEGERS(uint32_t, MPI_UNSIGNED)
  INTEGERS(int64_t, MPI_LONG)
  INTEGERS(uint64_t, MPI_UINT64_T)
  NUMBERS(float, MPI_FLOAT)
  NUMBERS(double, MPI_DOUBLE)
  NUMBERS(long double, MPI_LONG_DOUBLE)
  REDUCE(float complex, MPI_C_FLOAT_COMPLEX, MPI_SUM, a + b)
  REDUCE(double complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, a + b)
  REDUCE(double complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, a *b)
  REDUCE(bool, MPI_C_BOOL, MPI_LAND, a &&b)
  REDUCE(unsigned char, MPI_BYTE, MPI_BXOR, a ^ b)
}

/* Sums of floats that do depend on the order: alike on every rank, and twice. */
static void same_bits_everywhere(void) {
  const int n = 200001;
  float *mine = (float *)in;
  for (int i = 0; i < n; ++i) mine[i] = (float)((i * 7919 + rank * 104729) % 10007) / 10007.0f;
  MPI_Allreduce(mine, out, n, MPI_FLOAT, MPI_SUM, comm);
  MPI_Allreduce(mine, again, n, MPI_FLOAT, MPI_SUM, comm);
  CHECK(memcmp(out, again, (size_t)n * 4) == 0);
  memcpy(want, out, (size_t)n * 4);
  MPI_Bcast(want, n, MPI_FLOAT, 0, comm);
  CHECK(memcmp(out, want, (size_t)n * 4) == 0);
  float *sums = (float *)out;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += ((i * 7919 + r * 104729) % 10007) / 10007.0;
    CHECK(sums[i] - sum < 1e-4 && sum - sums[i] < 1e-4);
  }
}

static void user_sum(void *a, void *b, int *n, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int *)b)[i] += ((int *)a)[i];
}

/* What the interposer leaves alone must still work beside it. */
static void others(void) {
  const int n = 100000;
  MPI_Op op;
  MPI_Op_create(user_sum, 1, &op);
  int *a = (int *)in, *b = (int *)out;
  for (int i = 0; i < n; ++i) a[i] = i / 9 + rank;
  MPI_Allreduce(a, b, n, MPI_INT, op, comm);
  for (int i = 0; i < n; ++i) CHECK(b[i] == i / 9 * size + size * (size - 1) / 2);
  MPI_Op_free(&op);
  struct {
    double value;
    int index;
  } *x = (void *)in, *y = (void *)out;
  for (int i = 0; i < n; ++i) x[i].value = (i + rank) % size, x[i].index = rank;
  MPI_Allreduce(x, y, n, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  for (int i = 0; i < n; ++i) CHECK(y[i].value == size - 1 && (i + y[i].index) % size == size - 1);
  MPI_Request request;
  for (int i = 0; i < n; ++i) a[i] = i / 9 + rank;
  MPI_Iallreduce(a, b, n, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) CHECK(b[i] == i / 9 * size + size * (size - 1) / 2);
  MPI_Ibcast(b, n, MPI_INT, size - 1, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void allgathers(void) {
  for (int i = 0; i < N_COUNTS; ++i) {
    const int n = counts[i] / 2 + 1;
    if ((size_t)n * 4 * (size_t)size + 8 > ROOM) continue;
    for (int in_place = 0; in_place < 2; ++in_place) {
      const size_t bytes = (size_t)n * 4;
      memset(out, 0xEE, bytes * (size_t)size + 8);
      fill(in_place ? out + (size_t)rank * bytes : in, bytes, (rank + i) % 3 ? TEXT : NOISE,
           (unsigned)rank);
      MPI_Allgather(in_place ? MPI_IN_PLACE : in, n, MPI_INT, out, n, MPI_INT, comm);
      for (int r = 0; r < size; ++r)
        CHECK(filled(out + (size_t)r * bytes, bytes, (r + i) % 3 ? TEXT : NOISE, (unsigned)r));
      CHECK(all_bytes(out + bytes * (size_t)size, 8, 0xEE));
    }
  }
  /* strided on some ranks */
  const int blocks = 5000;
  MPI_Datatype vector, spread;
  MPI_Type_vector(blocks, 2, 4, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, blocks * 16, &spread);
  MPI_Type_commit(&spread);
  int *a = (int *)in, *b = (int *)out;
  memset(b, 0xEE, (size_t)size * blocks * 16);
  for (int i = 0; i < blocks * 2; ++i) a[i] = i / 30 + rank;
  if (rank % 2) {
    MPI_Allgather(a, blocks * 2, MPI_INT, b, 1, spread, comm);
  } else {
    MPI_Allgather(a, blocks * 2, MPI_INT, b, blocks * 2, MPI_INT, comm);
  }
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < blocks * 2; ++i)
      CHECK(b[rank % 2 ? r * blocks * 4 + i / 2 * 4 + i % 2 : r * blocks * 2 + i] == i / 30 + r);
  if (rank % 2) CHECK(b[2] == (int)0xEEEEEEEE);
  MPI_Type_free(&vector);
  MPI_Type_free(&spread);
}

static void scatters(void) {
  const int n = 50000;
  double *a = (double *)in, *b = (double *)out;
  for (int i = 0; i < n * size; ++i) a[i] = i / 9 + rank;
  MPI_Reduce_scatter_block(a, b, n, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < n; ++i) CHECK(b[i] == (rank * n + i) / 9 * size + size * (size - 1) / 2);
}

static void large_counts(void) {
#if MPI_VERSION >= 4
  const MPI_Count n = 100000;
  int *a = (int *)in, *b = (int *)out;
  for (int i = 0; i < n; ++i) a[i] = i / 9 + rank;
  MPI_Allreduce_c(a, b, n, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < n; ++i) CHECK(b[i] == i / 9 * size + size * (size - 1) / 2);
  MPI_Bcast_c(a, n, MPI_INT, size - 1, comm);
  for (int i = 0; i < n; ++i) CHECK(a[i] == i / 9 + size - 1);
  MPI_Allgather_c(a, n / 2, MPI_INT, b, n / 2, MPI_INT, comm);
  for (int i = 0; i < n / 2 * size; ++i) CHECK(b[i] == i % (n / 2) / 9 + size - 1);
  MPI_Reduce_scatter_block_c(b, a, n / 4, MPI_INT, MPI_MAX, comm);
  for (int i = 0; i < n / 4; ++i) CHECK(a[i] == (i + n / 4 * rank) % (n / 2) / 9 + size - 1);
#endif
}

static void all(const char *name, int reduce) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  bcasts();
  mixed_bcasts();
  allgathers();
  same_bits_everywhere();
  others();
  scatters();
  large_counts();
  if (reduce) reductions();
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  if (world == 0) printf("ok %s\n", name), fflush(stdout);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  in = malloc(ROOM), out = malloc(ROOM), want = malloc(ROOM), again = malloc(ROOM);
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  comm = MPI_COMM_WORLD;
  all("world", argc < 2);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (world * 5 + 3) % 4, &comm); /* nodes interleaved */
  all("shuffled", 0);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comm);
  all("halves", 0);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, world == 0, world, &comm);
  all("all but one", 0);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
