/* SPDX-License-Identifier: Apache-2.0
 * Every call that moves or reduces data, beside MPI's own (its PMPI name) on the same arguments:
 * types of every kind, communicators and topologies of every kind, in place and not, all roots,
 * empty blocks.
 *
 *   matrix SEED STEPS                  the same bytes
 *   matrix SEED STEPS rel|abs BOUND    floats within BOUND, everything else the same bytes, and the
 *                                      same bytes on every rank where that is promised
 *
 * A difference ends the job and names seed, step and call. Sums of the exact form are of small
 * whole numbers, so that the order of adding them does not matter. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "check.h"

static uint64_t seed;
static long step;
static const char *doing = "start";
static int world_rank, world_size;
static char mode = 'e'; /* exact, rel, abs */
static double bound;

#define FAIL(...)                                                                                  \
  do {                                                                                             \
    fprintf(stderr, "matrix %llu: step %ld, %s, rank %d: ", (unsigned long long)seed, step, doing, \
            world_rank);                                                                           \
    fprintf(stderr, __VA_ARGS__);                                                                  \
    fprintf(stderr, "\n");                                                                         \
    MPI_Abort(MPI_COMM_WORLD, 1);                                                                  \
  } while (0)

/* ---- random numbers ---- */

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
static uint64_t state; /* the same on every rank */
static int below(int n) {
  state = mix(state);
  return (int)((state >> 20) % (uint64_t)n);
}

/* ---- types ---- */

enum Leaf { INTEGER, BYTES, BOOL, FLOAT, DOUBLE, LONG_DOUBLE, OTHER };
typedef struct {
  const char *name;
  MPI_Datatype type;
  enum Leaf leaf; /* what it is made of */
  int leaf_size;  /* bytes */
  int complex_, named;
  int size, extent; /* bytes of packed data, and from one element to the next */
} Type;
#define MOST_TYPES 40
static Type types[MOST_TYPES];
static int n_types, n_named;

static void add_type(const char *name, MPI_Datatype type, enum Leaf leaf, int leaf_size,
                     int complex_, int named) {
  MPI_Aint lower, extent;
  if (type == MPI_DATATYPE_NULL) return;
  Type *t = &types[n_types++];
  *t = (Type){name, type, leaf, leaf_size, complex_, named, 0, 0};
  PMPI_Type_size(type, &t->size);
  PMPI_Type_get_extent(type, &lower, &extent);
  t->extent = (int)extent;
}

static void add_vector(const char *name, MPI_Datatype base, enum Leaf leaf, int leaf_size) {
  MPI_Datatype type, resized;
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(base, &lower, &extent);
  PMPI_Type_vector(2, 3, 5, base, &type);
  PMPI_Type_create_resized(type, 0, 9 * extent, &resized);
  PMPI_Type_commit(&resized);
  PMPI_Type_free(&type);
  add_type(name, resized, leaf, leaf_size, 0, 0);
}

static void make_types(void) {
#define NAMED(name, leaf, complex_)                                           \
  do {                                                                        \
    int size_;                                                                \
    PMPI_Type_size(name, &size_);                                             \
    add_type(#name, name, leaf, (complex_) ? size_ / 2 : size_, complex_, 1); \
  } while (0)
  NAMED(MPI_INT8_T, INTEGER, 0);
  NAMED(MPI_UNSIGNED_CHAR, INTEGER, 0);
  NAMED(MPI_SHORT, INTEGER, 0);
  NAMED(MPI_UINT16_T, INTEGER, 0);
  NAMED(MPI_INT, INTEGER, 0);
  NAMED(MPI_UNSIGNED, INTEGER, 0);
  NAMED(MPI_INT64_T, INTEGER, 0);
  NAMED(MPI_UNSIGNED_LONG_LONG, INTEGER, 0);
  NAMED(MPI_FLOAT, FLOAT, 0);
  NAMED(MPI_DOUBLE, DOUBLE, 0);
  NAMED(MPI_C_FLOAT_COMPLEX, FLOAT, 1);
  NAMED(MPI_C_DOUBLE_COMPLEX, DOUBLE, 1);
  NAMED(MPI_LONG_DOUBLE, LONG_DOUBLE, 0);
  NAMED(MPI_C_BOOL, BOOL, 0);
  NAMED(MPI_BYTE, BYTES, 0);
  n_named = n_types;
  NAMED(MPI_CHAR, OTHER, 0);
  NAMED(MPI_2INT, OTHER, 0);
#ifndef MPICH_VERSION /* 4.0.2 itself truncates it in collectives */
  NAMED(MPI_DOUBLE_INT, OTHER, 0);
#endif
#ifdef MPIX_C_FLOAT16
  NAMED(MPIX_C_FLOAT16, OTHER, 0);
#endif
  add_vector("floats with gaps", MPI_FLOAT, FLOAT, 4);
  add_vector("doubles with gaps", MPI_DOUBLE, DOUBLE, 8);
  add_vector("integers with gaps", MPI_INT, OTHER, 4);
  MPI_Datatype type, resized;
  PMPI_Type_contiguous(3, MPI_DOUBLE, &type);
  PMPI_Type_commit(&type);
  add_type("three doubles", type, DOUBLE, 8, 0, 0);
  int lengths[] = {1, 2};
  MPI_Aint places[] = {0, 8};
  MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE};
  PMPI_Type_create_struct(2, lengths, places, parts, &type);
  PMPI_Type_create_resized(type, 0, 32, &resized);
  PMPI_Type_commit(&resized);
  PMPI_Type_free(&type);
  add_type("structures", resized, OTHER, 1, 0, 0);
}

static int lossy(const Type *t) { return mode != 'e' && (t->leaf == FLOAT || t->leaf == DOUBLE); }

/* ---- what buffers hold ---- */

/* Leaf i of rank r: runs, waves, noise or what is special; NaN with bits of its own. */
static double real_at(int kind, int r, long i) {
  static const double special[] = {0.0,  -0.0,     1e-320, 1e-42,         -3e-44, 1e30,
                                   -1.0, INFINITY, NAN,    -1.0 / 1024.0, 2.5,    -INFINITY};
  switch (kind) {
    case 0:
      return 0;
    case 1:
      return (double)((i / 41 + r * 3) % 5 + 1);
    case 2:
      return sin((double)(i + 131 * r) / 50) + 0.25 * r;
    case 3:
      return (double)(int64_t)(mix((uint64_t)i + ((uint64_t)r << 40) + seed) >> 8) * 0x1p-56;
    default:
      return i % 7 ? cos((double)(i + 17 * r) / 30) : special[(i / 7 + r) % 12];
  }
}

static void put_leaf(const Type *t, int kind, int r, long i, unsigned char *to) {
  const double x = real_at(kind, r, i);
  if (t->leaf == FLOAT) {
    const float value = (float)x;
    memcpy(to, &value, sizeof value);
  } else if (t->leaf == DOUBLE) {
    memcpy(to, &x, sizeof x);
  } else if (t->leaf == LONG_DOUBLE) {
    const long double value = x;
    memset(to, 0, sizeof value);
    memcpy(to, &value, 10);
  } else if (t->leaf == BOOL) {
    *to = (unsigned char)((i / 5 + r) % 3 == 0);
  } else if (kind == 3) {
    const uint64_t noise = mix((uint64_t)i * 31 + (uint64_t)r);
    memset(to, 0, (size_t)t->leaf_size);
    memcpy(to, &noise, (size_t)t->leaf_size < 8 ? (size_t)t->leaf_size : 8);
  } else {
    memset(to, 0, (size_t)t->leaf_size);
    to[0] = (unsigned char)((i / 41 + r * 3) % 5 + 1);
  }
}

/* `count` elements from element `first` on, as rank r has them. */
static void fill_blocks(const Type *t, int kind, int r, long first, long count, void *at) {
  const long leaves = t->size / t->leaf_size;
  if (count == 0) return;
  unsigned char *packed = malloc((size_t)(count * t->size) + 1);
  for (long i = 0; i < count * leaves; ++i)
    put_leaf(t, kind, r, first * leaves + i, packed + i * t->leaf_size);
  int place = 0;
  PMPI_Unpack(packed, (int)(count * t->size), &place, at, (int)count, t->type, MPI_COMM_SELF);
  free(packed);
}

/* A buffer whose bytes mean nothing yet, with a margin that must stay as it is. */
#define MARGIN 64
static unsigned char *blank(size_t size) {
  unsigned char *memory = malloc(size + 2 * MARGIN);
  memset(memory, 0xA5, size + 2 * MARGIN);
  return memory + MARGIN;
}
static void release(unsigned char *memory) { free(memory - MARGIN); }

/* ---- what must hold of results ---- */

static double leaf_value(const Type *t, const unsigned char *at) {
  float single;
  double value;
  memcpy(&single, at, sizeof single);
  if (t->leaf == FLOAT) return single;
  memcpy(&value, at, sizeof value);
  return value;
}

/* Of a value that is sent; `magnitude`: of a reduction, what its bound is relative to. */
static void judge_leaf(const Type *t, const unsigned char *got, const unsigned char *want,
                       const double *magnitude, double exact, double slack, long i) {
  const double y = leaf_value(t, got), x = magnitude ? exact : leaf_value(t, want);
  const int same = memcmp(got, want, (size_t)t->leaf_size) == 0;
  if (!isfinite(x)) {
    if (magnitude ? isnan(x) ? !isnan(y) : y != x : !same) FAIL("%g became %g at %ld", x, y, i);
    return;
  }
  const double most = mode == 'r' ? bound * (magnitude ? *magnitude : fabs(x)) : bound;
  if (!(fabs(y - x) <= most + slack)) FAIL("%.17g became %.17g at %ld", x, y, i);
  if (mode == 'r' && !magnitude && x == 0 && !same) FAIL("a zero became %g at %ld", y, i);
}

/* `count` elements, which count from `first` in what the reduction was of; then `got` is `want`. */
typedef struct {
  const double *exact, *magnitude; /* nullptr: what was sent */
  int ranks;
} Sums;
static void judge_block(const Type *t, unsigned char *got, unsigned char *want, long first,
                        long count, const Sums *sums) {
  if (count == 0 || !lossy(t)) return;
  const int bytes = (int)(count * t->size);
  unsigned char *packed = malloc(2 * (size_t)bytes);
  int place = 0;
  PMPI_Pack(got, (int)count, t->type, packed, bytes, &place, MPI_COMM_SELF);
  place = 0;
  PMPI_Pack(want, (int)count, t->type, packed + bytes, bytes, &place, MPI_COMM_SELF);
  const long leaves = t->size / t->leaf_size;
  for (long i = 0; i < count * leaves; ++i) {
    const unsigned char *g = packed + i * t->leaf_size, *w = g + bytes;
    if (!sums) {
      judge_leaf(t, g, w, NULL, 0, 0, i);
      continue;
    }
    const long at = first * leaves + i;
    const double epsilon = t->leaf == FLOAT ? FLT_EPSILON : DBL_EPSILON;
    const double slack =
        epsilon * sums->ranks * sums->magnitude[at] + (t->leaf == FLOAT ? 1e-44 : 0);
    judge_leaf(t, g, w, &sums->magnitude[at], sums->exact[at], slack, i);
  }
  place = 0;
  PMPI_Unpack(packed + bytes, bytes, &place, got, (int)count, t->type, MPI_COMM_SELF);
  free(packed);
}

/* What is compared where sums may have other paddings. */
static void judge_bytes(const Type *t, const unsigned char *got, const unsigned char *want,
                        size_t size) {
  for (size_t i = 0; i < size + 2 * MARGIN; ++i) {
    const size_t at = i - MARGIN;
    if (t->leaf == LONG_DOUBLE && i >= MARGIN && at < size && at % 16 >= 10) continue;
    if (got[(ptrdiff_t)at] != want[(ptrdiff_t)at])
      FAIL("byte %ld of %zu is %02x, not %02x", (long)at, size, got[(ptrdiff_t)at],
           want[(ptrdiff_t)at]);
  }
}

static void same_everywhere(const unsigned char *data, size_t size, MPI_Comm comm) {
  unsigned long long hash[2] = {1469598103934665603u, 0};
  for (size_t i = 0; i < size; ++i) hash[0] = (hash[0] ^ data[i]) * 1099511628211u;
  hash[1] = ~hash[0];
  PMPI_Allreduce(MPI_IN_PLACE, hash, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, comm);
  if (hash[0] != ~hash[1]) FAIL("ranks have other bits");
}

/* ---- communicators ---- */

typedef struct {
  const char *name;
  MPI_Comm comm;
  int rank, size, inter, remote;
} Group;
static Group groups[8];
static int n_groups;

static void add_group(const char *name, MPI_Comm comm, int inter) {
  Group *g = &groups[n_groups++];
  *g = (Group){name, comm, 0, 0, inter, 0};
  MPI_Comm_rank(comm, &g->rank);
  MPI_Comm_size(comm, &g->size);
  if (inter) MPI_Comm_remote_size(comm, &g->remote);
}

static void make_groups(void) {
  MPI_Comm comm, half;
  add_group("world", MPI_COMM_WORLD, 0);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  add_group("duplicate", comm, 0);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
  add_group("reversed", comm, 0);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank < 2 ? -1 : world_rank * 7 % 5, &half);
  add_group("odd or even", half, 0);
  add_group("self", MPI_COMM_SELF, 0);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world_rank % 2 ? 0 : 1, 9, &comm);
  add_group("inter", comm, 1);
}

/* ---- reductions ---- */

static const MPI_Op *ops_of(const Type *t, int *n) {
  static MPI_Op arithmetic[4], complexes[2], all[10], bits[3], logical[3];
  arithmetic[0] = complexes[0] = all[0] = MPI_SUM;
  arithmetic[1] = complexes[1] = all[1] = MPI_PROD;
  arithmetic[2] = all[2] = MPI_MAX;
  arithmetic[3] = all[3] = MPI_MIN;
  bits[0] = all[4] = MPI_BAND;
  bits[1] = all[5] = MPI_BOR;
  bits[2] = all[6] = MPI_BXOR;
  logical[0] = all[7] = MPI_LAND;
  logical[1] = all[8] = MPI_LOR;
  logical[2] = all[9] = MPI_LXOR;
  switch (t->leaf) {
    case INTEGER:
      return *n = 10, all;
    case BYTES:
      return *n = 3, bits;
    case BOOL:
      return *n = 3, logical;
    default:
      return *n = t->complex_ ? 2 : 4, t->complex_ ? complexes : arithmetic;
  }
}

/* Exact results in float64, and what a bound is relative to. The values have few bits. */
static void add_up(const Type *t, MPI_Op op, MPI_Comm comm, const unsigned char *mine, long count,
                   Sums *sums, int ranks) {
  const long n = count * (t->size / t->leaf_size);
  double *exact = malloc(((size_t)n + 1) * sizeof *exact);
  double *magnitude = malloc(((size_t)n + 1) * sizeof *magnitude);
  for (long i = 0; i < n; ++i) {
    exact[i] = leaf_value(t, mine + i * t->leaf_size);
    magnitude[i] = fabs(exact[i]);
  }
  PMPI_Allreduce(MPI_IN_PLACE, exact, (int)n, MPI_DOUBLE, op, comm);
  PMPI_Allreduce(MPI_IN_PLACE, magnitude, (int)n, MPI_DOUBLE, op == MPI_SUM ? MPI_SUM : MPI_MAX,
                 comm);
  *sums = (Sums){exact, magnitude, ranks};
}

enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_BLOCK, IALLREDUCE, IREDUCE, SCAN, N_REDUCTIONS };
static const char *const reduction_names[] = {
    "Allreduce", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Iallreduce",
    "Ireduce",   "Scan"};

static void reduce_once(int call, int plain, const void *from, void *to, const int *counts,
                        const Type *t, MPI_Op op, int root, MPI_Comm comm) {
  MPI_Request request;
  MPI_Status status;
  const int n = counts[0];
  switch (call) {
    case ALLREDUCE:
      (plain ? PMPI_Allreduce : MPI_Allreduce)(from, to, n, t->type, op, comm);
      break;
    case REDUCE:
      (plain ? PMPI_Reduce : MPI_Reduce)(from, to, n, t->type, op, root, comm);
      break;
    case REDUCE_SCATTER:
      (plain ? PMPI_Reduce_scatter : MPI_Reduce_scatter)(from, to, counts, t->type, op, comm);
      break;
    case REDUCE_BLOCK:
      (plain ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(from, to, n, t->type, op,
                                                                     comm);
      break;
    case IALLREDUCE:
      (plain ? PMPI_Iallreduce : MPI_Iallreduce)(from, to, n, t->type, op, comm, &request);
      (plain ? PMPI_Wait : MPI_Wait)(&request, &status);
      break;
    case IREDUCE:
      (plain ? PMPI_Ireduce : MPI_Ireduce)(from, to, n, t->type, op, root, comm, &request);
      (plain ? PMPI_Wait : MPI_Wait)(&request, &status);
      break;
    default:
      (plain ? PMPI_Scan : MPI_Scan)(from, to, n, t->type, op, comm);
  }
}

static void reduction(const Group *g, const Type *t, long count) {
  static char name[160];
  int n_ops;
  const MPI_Op *ops = ops_of(t, &n_ops);
  const int which = below(n_ops), call = below(N_REDUCTIONS), root = below(g->size);
  const MPI_Op op = ops[which];
  int in_place = below(2), counts[64];
#ifdef MPICH_VERSION /* 4.0.2 itself dies of it: "memory ranges overlap" */
  if (call == REDUCE_SCATTER || (call == REDUCE && root > 0) || (call == IREDUCE && root > 0))
    in_place = 0;
#endif
  const int inexact = lossy(t) && op != MPI_PROD && call != SCAN;
  const int special = below(2) && op == MPI_SUM; /* a maximum beside NaN may be either */
  const int kind = inexact ? special ? 4 : 2 : 1;
  snprintf(name, sizeof name, "%s of %ld %s, operation %d, root %d, %s, %s", reduction_names[call],
           count, t->name, which, root, in_place ? "in place" : "not in place", g->name);
  doing = name;
  long total = 0;
  for (int r = 0; r < g->size; ++r) {
    counts[r] = call == REDUCE_SCATTER ? r % 3 == 1 ? 0 : (int)count / (r + 1) : (int)count;
    if (call == REDUCE_SCATTER || call == REDUCE_BLOCK) total += counts[r];
  }
  if (total == 0) total = count;
  const size_t size = (size_t)total * (size_t)t->extent;
  unsigned char *mine = blank(size), *result[2];
  fill_blocks(t, kind, g->rank, 0, total, mine);
  for (int plain = 0; plain < 2; ++plain) {
    result[plain] = blank(size);
    const int at_root = call != REDUCE && call != IREDUCE ? 1 : g->rank == root;
    const int here = in_place && at_root;
    if (here) memcpy(result[plain], mine, size);
    reduce_once(call, plain, here ? MPI_IN_PLACE : mine, result[plain], counts, t, op, root,
                g->comm);
  }
  long first = 0, n = total;
  if (call == REDUCE_SCATTER || call == REDUCE_BLOCK) {
    for (int r = 0; r < g->rank; ++r) first += counts[r];
    n = counts[g->rank];
    /* What is behind its own part of a buffer in place MPI may have used. */
    if (in_place) memset(result[0] + n * t->extent, 0, size - (size_t)(n * t->extent));
    if (in_place) memset(result[1] + n * t->extent, 0, size - (size_t)(n * t->extent));
  }
  if (call == REDUCE || call == IREDUCE) n = g->rank == root ? total : 0;
  if (call == ALLREDUCE || call == IALLREDUCE) {
    if (t->leaf != LONG_DOUBLE) same_everywhere(result[0], size, g->comm);
  }
  if (inexact) {
    Sums sums;
    add_up(t, op, g->comm, mine, total, &sums, g->size);
    judge_block(t, result[0], result[1], first, n, &sums);
    free((void *)sums.exact);
    free((void *)sums.magnitude);
  }
  judge_bytes(t, result[0], result[1], size);
  release(mine), release(result[0]), release(result[1]);
}

/* ---- data that travel ---- */

enum {
  BCAST,
  GATHER,
  GATHERV,
  SCATTER,
  SCATTERV,
  ALLGATHER,
  ALLGATHERV,
  ALLTOALL,
  ALLTOALLV,
  ALLTOALLW,
  IBCAST,
  IALLGATHER,
  IALLTOALL,
  N_MOVES
};
static const char *const move_names[] = {
    "Bcast",    "Gather",    "Gatherv",   "Scatter", "Scatterv",   "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Ibcast",  "Iallgather", "Ialltoall"};

typedef struct {
  int counts[64], at[64], bytes_at[64];
  MPI_Datatype types[64];
  int total; /* elements, gaps included */
} Parts;

/* Blocks of equal size one behind the other, or uneven ones with gaps in another order. */
static Parts lay_out(const Type *t, int n, int count, int even, int me, int incoming) {
  Parts p = {.total = 0};
  for (int i = 0; i < n; ++i) {
    const int r = even ? i : n - 1 - i;
    /* From a to b go as many as both know; none in one of five pairs. */
    const int pair = even ? 0 : incoming ? r * 3 + me : me * 3 + r;
    p.counts[r] = even ? count : pair % 5 == 2 ? 0 : count / (pair % 4 + 1);
    p.at[r] = p.total;
    p.bytes_at[r] = p.total * t->extent;
    p.types[r] = t->type;
    p.total += p.counts[r] + (even ? 0 : 2);
  }
  return p;
}

static void move_once(int call, int plain, const void *from, const Parts *out, void *to,
                      const Parts *in, const Type *t, int root, int me, MPI_Comm comm) {
  MPI_Request request;
  MPI_Status status;
  const MPI_Datatype type = t->type;
  const int n = in->counts[0], o = out->counts[0];
  const int *rc = in->counts, *ra = in->at, *sc = out->counts, *sa = out->at;
#define EITHER(name) (plain ? PMPI_##name : MPI_##name)
#define AND_WAIT EITHER(Wait)(&request, &status)
  switch (call) {
    case BCAST:
      EITHER(Bcast)(to, n, type, root, comm);
      break;
    case GATHER:
      EITHER(Gather)(from, o, type, to, n, type, root, comm);
      break;
    case GATHERV:
      EITHER(Gatherv)(from, sc[root], type, to, rc, ra, type, root, comm);
      break;
    case SCATTER:
      EITHER(Scatter)(from, o, type, to, n, type, root, comm);
      break;
    case SCATTERV:
      EITHER(Scatterv)(from, sc, sa, type, to, rc[root], type, root, comm);
      break;
    case ALLGATHER:
      EITHER(Allgather)(from, o, type, to, n, type, comm);
      break;
    case ALLGATHERV:
      EITHER(Allgatherv)(from, rc[me], type, to, rc, ra, type, comm);
      break;
    case ALLTOALL:
      EITHER(Alltoall)(from, o, type, to, n, type, comm);
      break;
    case ALLTOALLV:
      EITHER(Alltoallv)(from, sc, sa, type, to, rc, ra, type, comm);
      break;
    case ALLTOALLW:
      EITHER(Alltoallw)(from, sc, out->bytes_at, out->types, to, rc, in->bytes_at, in->types, comm);
      break;
    case IBCAST:
      EITHER(Ibcast)(to, n, type, root, comm, &request);
      AND_WAIT;
      break;
    case IALLGATHER:
      EITHER(Iallgather)(from, o, type, to, n, type, comm, &request);
      AND_WAIT;
      break;
    default:
      EITHER(Ialltoall)(from, o, type, to, n, type, comm, &request);
      AND_WAIT;
  }
}

static int rooted(int call) {
  return call == BCAST || call == IBCAST || (call >= GATHER && call <= SCATTERV);
}

static void movement(const Group *g, const Type *t, int count) {
  static char name[160];
  const int call = below(N_MOVES), root = below(g->size), kind = below(5), me = g->rank;
  int in_place = below(2);
#ifndef MPICH_VERSION
  if (call == IALLTOALL) in_place = 0; /* Open MPI 4.1 has none in place */
#endif
  const int even = call != GATHERV && call != SCATTERV && call != ALLGATHERV && call != ALLTOALLV &&
                   call != ALLTOALLW;
  const int bcast = call == BCAST || call == IBCAST;
  const int to_all =
      call == ALLTOALL || call == ALLTOALLV || call == ALLTOALLW || call == IALLTOALL;
#ifdef MPICH_VERSION /* 4.0.2 itself truncates that */
  if (to_all && t->size != t->extent) in_place = 0;
#endif
  snprintf(name, sizeof name, "%s of %d %s, data %d, root %d, %s, %s", move_names[call], count,
           t->name, kind, root, in_place ? "in place" : "not in place", g->name);
  doing = name;
  const int uneven = !even;
  Parts in = lay_out(t, bcast ? 1 : g->size, count, even, me, 1);
  Parts out = lay_out(t, bcast ? 1 : g->size, count, even, me, 0);
  if (uneven &&
      (!to_all || in_place)) { /* what a rank sends or gets does not depend on the other */
    in = lay_out(t, g->size, count, 0, 0, 1);
    out = lay_out(t, g->size, count, 0, 0, 1);
    if (to_all && in_place) /* both sides of a pair name one size */
      for (int r = 0; r < g->size; ++r) in.counts[r] = out.counts[r] = count / 3;
    if (to_all && in_place) {
      in.total = 0;
      for (int r = 0; r < g->size; ++r) {
        in.at[r] = out.at[r] = in.total;
        in.bytes_at[r] = out.bytes_at[r] = in.total * t->extent;
        in.total += in.counts[r] + 2;
      }
      out.total = in.total;
    }
    if (call == GATHERV) out.counts[root] = in.counts[me];
    if (call == SCATTERV) in.counts[root] = out.counts[me];
  }
  const size_t in_size = (size_t)in.total * (size_t)t->extent;
  const size_t out_size = (size_t)out.total * (size_t)t->extent;
  unsigned char *from = blank(out_size), *result[2];
  const int at_root = !rooted(call) || me == root;
  for (int r = 0; r < (bcast ? 0 : g->size); ++r) {
    /* A gather sends one block, from the begin. */
    const int scatters = call == SCATTER || call == SCATTERV || to_all;
    if (scatters) fill_blocks(t, kind, me, out.at[r], out.counts[r], from + out.bytes_at[r]);
  }
  if (call == GATHER || call == ALLGATHER || call == IALLGATHER)
    fill_blocks(t, kind, me, 0, out.counts[0], from);
  if (call == GATHERV || call == ALLGATHERV)
    fill_blocks(t, kind, me, 0, call == GATHERV ? out.counts[root] : in.counts[me], from);
  for (int plain = 0; plain < 2; ++plain) {
    unsigned char *to = result[plain] = blank(in_size);
    const void *send = from;
    void *receive = to;
    if (bcast && me == root) fill_blocks(t, kind, me, 0, in.counts[0], to);
    if (in_place && at_root && !bcast) {
      if (call == SCATTER || call == SCATTERV) {
        receive = MPI_IN_PLACE;
      } else {
        send = MPI_IN_PLACE;
        if (to_all)
          for (int r = 0; r < g->size; ++r)
            fill_blocks(t, kind, me, in.at[r], in.counts[r], to + in.bytes_at[r]);
        else
          fill_blocks(t, kind, me, 0, in.counts[me], to + in.bytes_at[me]);
      }
    }
    move_once(call, plain, send, &out, receive, &in, t, root, me, g->comm);
  }
  if (lossy(t)) {
    if (call == ALLGATHER || call == ALLGATHERV || call == IALLGATHER)
      same_everywhere(result[0], in_size, g->comm);
    if (bcast) {
      judge_block(t, result[0], result[1], 0, in.counts[0], NULL);
    } else if (call == SCATTER || call == SCATTERV) {
      if (!(in_place && at_root))
        judge_block(t, result[0], result[1], 0, in.counts[call == SCATTER ? 0 : root], NULL);
    } else {
      for (int r = 0; r < g->size; ++r)
        if (at_root)
          judge_block(t, result[0] + in.bytes_at[r], result[1] + in.bytes_at[r], 0, in.counts[r],
                      NULL);
    }
  }
  judge_bytes(t, result[0], result[1], in_size);
  release(from), release(result[0]), release(result[1]);
}

/* ---- neighbours ---- */

typedef struct {
  const char *name;
  MPI_Comm comm;
  int rank, n_in, n_out, in[64], out[64];
} Topology;
static Topology topologies[12];
static int n_topologies;

static Topology *add_topology(const char *name, MPI_Comm comm) {
  Topology *g = &topologies[n_topologies++];
  *g = (Topology){.name = name, .comm = comm};
  MPI_Comm_rank(comm, &g->rank);
  return g;
}

static void add_cart(const char *name, int n_dims, int periodic) {
  int dims[3] = {0, 0, 0}, periods[3] = {periodic, periodic, periodic};
  MPI_Comm comm;
  MPI_Dims_create(world_size, n_dims, dims);
  MPI_Cart_create(MPI_COMM_WORLD, n_dims, dims, periods, 0, &comm);
  Topology *g = add_topology(name, comm);
  for (int i = 0; i < n_dims; ++i) {
    MPI_Cart_shift(comm, i, 1, &g->in[g->n_in], &g->in[g->n_in + 1]);
    g->n_in += 2;
  }
  g->n_out = g->n_in;
  memcpy(g->out, g->in, sizeof g->in);
}

/* Rank 0 and each of the others. */
static void add_star(void) {
  int index[64], edges[128], n = 0;
  for (int r = 0; r < world_size; ++r) {
    if (r > 0) edges[n++] = 0;
    for (int i = 1; r == 0 && i < world_size; ++i) edges[n++] = i;
    index[r] = n;
  }
  MPI_Comm comm;
  MPI_Graph_create(MPI_COMM_WORLD, world_size, index, edges, 0, &comm);
  Topology *g = add_topology("star", comm);
  MPI_Graph_neighbors_count(comm, g->rank, &g->n_in);
  MPI_Graph_neighbors(comm, g->rank, g->n_in, g->in);
  g->n_out = g->n_in;
  memcpy(g->out, g->in, sizeof g->in);
}

static void learn_edges(Topology *g) {
  int weights[2][64], weighted;
  MPI_Dist_graph_neighbors_count(g->comm, &g->n_in, &g->n_out, &weighted);
  MPI_Dist_graph_neighbors(g->comm, g->n_in, g->in, weights[0], g->n_out, g->out, weights[1]);
}

/* Edges of any kind. kind 0: one way, to itself and to the next two; 1: some stand twice; 2: the
 * last rank has no neighbours, the others all, with weights. */
static void add_edges(const char *name, int kind) {
  int in[64], out[64], weights[64], n_in = 0, n_out = 0;
  const int n = world_size, last = n - 1;
  for (int i = 0; i < 64; ++i) weights[i] = 1 + i % 5;
  for (int k = 0; k < n; ++k) {
    const int to = (world_rank + k) % n, from = (world_rank + 2 * n - 1 - k) % n;
    const int far = (from - world_rank + n) % n; /* the other way round: order is each rank's own */
    const int back = (n - far) % n;
    if (kind == 2) {
      if (world_rank != last && to != last) out[n_out++] = to;
      if (world_rank != last && from != last) in[n_in++] = from;
      continue;
    }
    for (int i = 0; k < 3 && i < (kind == 1 && k != 2 ? 2 : 1); ++i) out[n_out++] = to;
    for (int i = 0; back < 3 && i < (kind == 1 && back != 2 ? 2 : 1); ++i) in[n_in++] = from;
  }
  MPI_Comm comm;
  const int weighted = kind == 2;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_in, in, weighted ? weights : MPI_UNWEIGHTED,
                                 n_out, out, weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &comm);
  learn_edges(add_topology(name, comm));
}

/* Each rank names the edges that lead to it. */
static void add_gathered_edges(void) {
  MPI_Comm comm;
  const int degree = 2, to = world_rank;
  int sources[2] = {(to + 1) % world_size, (to + world_size - 1) % world_size};
  int degrees[2] = {1, 1}, destinations[2] = {to, to}, weights[2] = {3, 1};
  MPI_Dist_graph_create(MPI_COMM_WORLD, degree, sources, degrees, destinations, weights,
                        MPI_INFO_NULL, 0, &comm);
  learn_edges(add_topology("edges by their ends", comm));
}

static void make_topologies(void) {
  add_cart("chain", 1, 0);
  add_cart("ring", 1, 1);
  add_cart("torus", 2, 1);
  add_cart("block", 3, 0);
  add_star();
  add_edges("edges", 0);
  add_edges("double edges", 1);
  add_edges("all but one", 2);
  add_gathered_edges();
}

/* The block of each neighbour: of as many elements as both know. */
static Parts lay_out_neighbors(const Type *t, int n, const int *ranks, int count, int even, int me,
                               int incoming) {
  Parts p = {.total = 0};
  for (int i = 0; i < n; ++i) {
    const int k = even ? i : n - 1 - i;
    const int a = incoming ? ranks[k] : me, b = incoming ? me : ranks[k];
    const int pair = even ? 0 : abs(a * 3 + b);
    p.counts[k] = even ? count : pair % 5 == 2 ? 0 : count / (pair % 4 + 1);
    p.at[k] = p.total;
    p.bytes_at[k] = p.total * t->extent;
    p.types[k] = t->type;
    p.total += p.counts[k] + (even ? 0 : 2);
  }
  return p;
}

static void neighborhood(const Topology *g, const Type *t, int count) {
  static const char *const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv",
                                      "alltoallw"};
  static char name[160];
  const int call = below(5), starts = below(4) == 0, kind = below(5), me = g->rank;
  snprintf(name, sizeof name, "%seighbor_%s of %d %s, data %d, %s", starts ? "In" : "N",
           names[call], count, t->name, kind, g->name);
  doing = name;
  const int even = call == 0 || call == 2, gathers = call < 2;
  Parts in = lay_out_neighbors(t, g->n_in, g->in, count, even, me, 1);
  Parts out = lay_out_neighbors(t, g->n_out, g->out, count, even, me, 0);
  const int mine = call == 1 ? count / (me % 4 + 1) : count;
  if (call == 1) {
    in.total = 0;
    for (int k = 0; k < g->n_in; ++k) {
      in.counts[k] = count / ((g->in[k] < 0 ? 0 : g->in[k]) % 4 + 1);
      in.at[k] = in.total;
      in.bytes_at[k] = in.total * t->extent;
      in.total += in.counts[k] + 1;
    }
  }
  const size_t in_size = (size_t)in.total * (size_t)t->extent;
  const size_t out_size = (size_t)(gathers ? mine : out.total) * (size_t)t->extent;
  unsigned char *from = blank(out_size), *result[2];
  if (gathers) fill_blocks(t, kind, me, 0, mine, from);
  for (int k = 0; k < (gathers ? 0 : g->n_out); ++k)
    fill_blocks(t, kind, me, out.at[k] + 7 * k, out.counts[k], from + out.bytes_at[k]);
  MPI_Aint in_at[64], out_at[64];
  for (int k = 0; k < g->n_in; ++k) in_at[k] = in.bytes_at[k];
  for (int k = 0; k < g->n_out; ++k) out_at[k] = out.bytes_at[k];
  for (int plain = 0; plain < 2; ++plain) {
    unsigned char *to = result[plain] = blank(in_size);
    const MPI_Datatype type = t->type;
    MPI_Request request = MPI_REQUEST_NULL;
#define BOTH(call_, ...)                                       \
  if (starts) {                                                \
    EITHER(Ineighbor_##call_)(__VA_ARGS__, g->comm, &request); \
    EITHER(Wait)(&request, MPI_STATUS_IGNORE);                 \
  } else {                                                     \
    EITHER(Neighbor_##call_)(__VA_ARGS__, g->comm);            \
  }
    switch (call) {
      case 0:
        BOTH(allgather, from, mine, type, to, count, type)
        break;
      case 1:
        BOTH(allgatherv, from, mine, type, to, in.counts, in.at, type)
        break;
      case 2:
        BOTH(alltoall, from, count, type, to, count, type)
        break;
      case 3:
        BOTH(alltoallv, from, out.counts, out.at, type, to, in.counts, in.at, type)
        break;
      default:
        BOTH(alltoallw, from, out.counts, out_at, out.types, to, in.counts, in_at, in.types)
    }
  }
  for (int k = 0; k < g->n_in; ++k)
    if (g->in[k] >= 0)
      judge_block(t, result[0] + in.bytes_at[k], result[1] + in.bytes_at[k], 0, in.counts[k], NULL);
  judge_bytes(t, result[0], result[1], in_size);
  release(from), release(result[0]), release(result[1]);
}

/* ---- between two groups ---- */

static void between_groups(const Group *g, const Type *t, int count) {
  static char name[160];
  const int call = below(3), kind = below(5), root = below(2);
  snprintf(name, sizeof name, "between groups: call %d of %d %s, data %d", call, count, t->name,
           kind);
  doing = name;
  const int n = call == 1 ? g->remote : 1;
  const size_t size = (size_t)(n * count) * (size_t)t->extent;
  unsigned char *from = blank((size_t)count * (size_t)t->extent), *result[2];
  fill_blocks(t, kind, world_rank, 0, count, from);
  for (int plain = 0; plain < 2; ++plain) {
    result[plain] = blank(size);
    if (call == 0) {
      const int mine = world_rank % 2 == root;
      if (mine && g->rank == 0) memcpy(result[plain], from, size);
      EITHER(Bcast)
      (result[plain], count, t->type, mine ? g->rank == 0 ? MPI_ROOT : MPI_PROC_NULL : 0, g->comm);
    } else if (call == 1) {
      EITHER(Allgather)(from, count, t->type, result[plain], count, t->type, g->comm);
    } else {
      EITHER(Allreduce)(from, result[plain], count, MPI_BYTE, MPI_BXOR, g->comm);
    }
  }
  judge_bytes(t, result[0], result[1], size); /* left to MPI: exact */
  release(from), release(result[0]), release(result[1]);
}

/* ---- messages ---- */

/* What was on the stack before must not come out of a status. */
static __attribute__((noinline)) void soil_stack(void) {
  volatile unsigned char soil[1 << 14];
  for (size_t i = 0; i < sizeof soil; ++i) soil[i] = 0xFF;
}

enum { SEND, SSEND, BSEND, RSEND, ISEND, ISSEND, IBSEND, SEND_INIT, N_SENDS };
enum {
  RECV,
  IRECV_WAIT,
  IRECV_TEST,
  WAITALL,
  WAITANY,
  WAITSOME,
  TESTALL,
  TESTANY,
  TESTSOME,
  RECV_INIT,
  PROBE,
  IPROBE,
  MPROBE,
  IMPROBE,
  GET_STATUS,
  SENDRECV,
  REPLACE,
  N_RECVS
};

static void judge_status(const MPI_Status *status, int source, int tag, const Type *t, int count) {
  int n = -1, elements = -1, cancelled = -1;
  if (status->MPI_SOURCE != source)
    FAIL("the status names source %d, not %d", status->MPI_SOURCE, source);
  if (status->MPI_TAG != tag) FAIL("the status names tag %d, not %d", status->MPI_TAG, tag);
  MPI_Get_count(status, t->type, &n);
  MPI_Get_elements(status, MPI_BYTE, &elements);
  MPI_Test_cancelled(status, &cancelled);
  if (n != count || elements != count * t->size)
    FAIL("the status counts %d, %d bytes", n, elements);
  if (cancelled != 0) FAIL("the status says that it was cancelled");
}

/* `posted`: the receive is there, so that a send may wait for it. */
static void start_send(int how, int posted, const void *from, int count, const Type *t, int dest,
                       int tag, MPI_Comm comm, MPI_Request *request) {
  *request = MPI_REQUEST_NULL;
  switch (how) {
    case SEND:
      if (posted) {
        MPI_Send(from, count, t->type, dest, tag, comm);
        break;
      } /* fall through */
    case ISEND:
      MPI_Isend(from, count, t->type, dest, tag, comm, request);
      break;
    case SSEND:
      if (posted) {
        MPI_Ssend(from, count, t->type, dest, tag, comm);
        break;
      } /* fall through */
    case ISSEND:
      MPI_Issend(from, count, t->type, dest, tag, comm, request);
      break;
    case BSEND:
      MPI_Bsend(from, count, t->type, dest, tag, comm);
      break;
    case IBSEND:
      MPI_Ibsend(from, count, t->type, dest, tag, comm, request);
      break;
    case RSEND:
      MPI_Rsend(from, count, t->type, dest, tag, comm);
      break;
    default:
      MPI_Send_init(from, count, t->type, dest, tag, comm, request);
      MPI_Start(request);
  }
}

/* Waits for two requests in one of many ways, *statuses: of the receive, which is the first. */
static void complete(int how, MPI_Request *both, MPI_Status *status, int ignores) {
  MPI_Status statuses[2];
  int index, flag = 0, n, indices[2];
  memset(statuses, 0, sizeof statuses);
  MPI_Status *all = ignores ? MPI_STATUSES_IGNORE : statuses;
  switch (how) {
    case WAITALL:
      MPI_Waitall(2, both, all);
      break;
    case TESTALL:
      while (!flag) MPI_Testall(2, both, &flag, all);
      break;
    case WAITANY:
    case TESTANY:
      for (int left = 2; left > 0;) {
        MPI_Status one;
        memset(&one, 0, sizeof one);
        soil_stack();
        if (how == WAITANY) {
          MPI_Waitany(2, both, &index, ignores ? MPI_STATUS_IGNORE : &one), flag = 1;
        } else {
          MPI_Testany(2, both, &index, &flag, ignores ? MPI_STATUS_IGNORE : &one);
        }
        if (flag && index == MPI_UNDEFINED) break; /* a persistent one stays */
        if (!flag) continue;
        statuses[index] = one;
        --left;
      }
      break;
    case WAITSOME:
    case TESTSOME:
      for (int left = 2; left > 0;) {
        MPI_Status some[2];
        memset(some, 0, sizeof some);
        soil_stack();
        (how == WAITSOME ? MPI_Waitsome : MPI_Testsome)(2, both, &n, indices,
                                                        ignores ? MPI_STATUSES_IGNORE : some);
        if (n == MPI_UNDEFINED) break;
        for (int k = 0; k < n; ++k) statuses[indices[k]] = some[k];
        left -= n;
      }
      break;
    case IRECV_TEST:
      while (!flag) MPI_Test(&both[0], &flag, ignores ? MPI_STATUS_IGNORE : &statuses[0]);
      MPI_Wait(&both[1], MPI_STATUS_IGNORE);
      break;
    case GET_STATUS:
      while (!flag)
        MPI_Request_get_status(both[0], &flag, ignores ? MPI_STATUS_IGNORE : &statuses[0]);
      MPI_Wait(&both[0], ignores ? MPI_STATUS_IGNORE : status);
      MPI_Wait(&both[1], MPI_STATUS_IGNORE);
      if (!ignores && status->MPI_TAG != statuses[0].MPI_TAG)
        FAIL("two statuses of one receive differ");
      break;
    default:
      MPI_Wait(&both[0], ignores ? MPI_STATUS_IGNORE : &statuses[0]);
      MPI_Wait(&both[1], MPI_STATUS_IGNORE);
  }
  *status = statuses[0];
}

/* A ring: a message to the next rank, one from the one before it. */
static void message(const Group *g, const Type *t, int count) {
  static char name[160];
  const int how = below(N_SENDS), by = below(N_RECVS), kind = below(5), tag = 40 + below(5);
  const int any_source = below(2), any_tag = below(2), ignores = below(2);
  const int peers = g->inter ? g->remote : g->size;
  const int inter_pairs = g->size < g->remote ? g->size : g->remote;
  if (g->inter && g->rank >= inter_pairs) return;
  const int dest = g->inter ? g->rank : (g->rank + 1) % peers;
  const int source = g->inter ? g->rank : (g->rank + peers - 1) % peers;
  const size_t size = (size_t)count * (size_t)t->extent;
  snprintf(name, sizeof name, "message of %d %s, data %d, sent %d, received %d, %s%s", count,
           t->name, kind, how, by, g->name, ignores ? ", no status" : "");
  doing = name;
  unsigned char *from = blank(size), *got = blank(size + (size_t)t->extent),
                *want = blank(size + (size_t)t->extent);
  fill_blocks(t, kind, g->inter ? world_rank : g->rank, 0, count, from);
  PMPI_Sendrecv(from, count, t->type, dest, 1, want, count, t->type, source, 1, g->comm,
                MPI_STATUS_IGNORE);
  MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status, probed;
  memset(&status, 0, sizeof status);
  memset(&probed, 0, sizeof probed);
  MPI_Message matched;
  const int from_any = any_source ? MPI_ANY_SOURCE : source, of_any = any_tag ? MPI_ANY_TAG : tag;
  MPI_Status *mine = ignores ? MPI_STATUS_IGNORE : &status;
  /* One element more than comes, where the receiver cannot tell. */
  const int room = count + (by != REPLACE);
  const int posted = by != RECV && (by < PROBE || by == GET_STATUS);
  int has_probed = 0, flag = 0;
  if (by == RECV_INIT) {
    MPI_Recv_init(got, room, t->type, from_any, of_any, g->comm, &both[0]);
    MPI_Start(&both[0]);
  } else if (posted) {
    MPI_Irecv(got, room, t->type, from_any, of_any, g->comm, &both[0]);
  }
  /* A ready send needs its receive. */
  const int ready = how == RSEND && posted;
  if (ready && !g->inter) PMPI_Barrier(g->comm);
  const int send = how == RSEND && (!posted || g->inter) ? ISEND : how;
  soil_stack();
  if (by == SENDRECV) {
    MPI_Sendrecv(from, count, t->type, dest, tag, got, room, t->type, from_any, of_any, g->comm,
                 mine);
  } else if (by == REPLACE) {
    memcpy(got, from, size);
    MPI_Sendrecv_replace(got, count, t->type, dest, tag, from_any, of_any, g->comm, mine);
  } else {
    start_send(send, posted, from, count, t, dest, tag, g->comm, &both[1]);
    soil_stack();
    if (by == RECV) {
      MPI_Recv(got, room, t->type, from_any, of_any, g->comm, mine);
    } else if (by == PROBE || by == IPROBE) {
      if (by == PROBE) MPI_Probe(from_any, of_any, g->comm, &probed);
      while (by == IPROBE && !flag) MPI_Iprobe(from_any, of_any, g->comm, &flag, &probed);
      has_probed = 1;
      MPI_Recv(got, room, t->type, probed.MPI_SOURCE, probed.MPI_TAG, g->comm, mine);
    } else if (by == MPROBE) {
      MPI_Mprobe(from_any, of_any, g->comm, &matched, &probed);
      has_probed = 1;
      soil_stack();
      MPI_Mrecv(got, room, t->type, &matched, mine);
    } else if (by == IMPROBE) {
      while (!flag) MPI_Improbe(from_any, of_any, g->comm, &flag, &matched, &probed);
      has_probed = 1;
      MPI_Imrecv(got, room, t->type, &matched, &both[0]);
      soil_stack();
      MPI_Wait(&both[0], mine);
    }
    if (posted) complete(by, both, &status, ignores);
    if (!posted) MPI_Wait(&both[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; ++i)
      if (both[i] != MPI_REQUEST_NULL) MPI_Request_free(&both[i]);
  }
  if (!ignores) judge_status(&status, source, tag, t, count);
  if (has_probed) judge_status(&probed, source, tag, t, count);
  judge_block(t, got, want, 0, count, NULL);
  judge_bytes(t, got, want, size);
  release(from), release(got), release(want);
  if (!g->inter) PMPI_Barrier(g->comm); /* a message for anybody must not be of the next step */
}

/* ---- the program ---- */

static long any_count(const Type *t) {
  static const long bytes[] = {0, 1, 60, 1000, 4096, 20000, 33000, 70000, 150000, 300000};
  long n = bytes[below(10)];
  n += n > 100 ? below((int)n / 8) : 0;
  return n / t->size + (n % t->size && n < 100);
}

/* Of the first `n`; where floats may differ, more often one of them. */
static const Type *any_type(int n) {
  const Type *t = &types[below(n)];
  for (int i = 0; mode != 'e' && !lossy(t) && i < 3; ++i) t = &types[below(n)];
  return t;
}

static void do_step(void) {
  state = mix(seed * 1000003 + (uint64_t)step);
  const Group *g = &groups[below(n_groups)];
  const int what = below(4);
  const Type *t = any_type(what == 0 && !g->inter ? n_named : n_types);
  const long count = any_count(t);
  if (what == 3) return neighborhood(&topologies[below(n_topologies)], t, (int)(count / 2));
  if (what == 2) return message(g, t, (int)count);
  if (g->inter) return between_groups(g, t, (int)count);
  if (what == 0) return reduction(g, t, count);
  movement(g, t, (int)(count / g->size));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  CHECK(argc >= 3);
  seed = strtoull(argv[1], NULL, 10);
  const long steps = atol(argv[2]);
  if (argc > 4) mode = argv[3][0], bound = atof(argv[4]);
  const int attached = 4 << 20;
  void *buffer = malloc((size_t)attached);
  MPI_Buffer_attach(buffer, attached);
  make_types();
  make_groups();
  make_topologies();
  for (step = 0; step < steps; ++step) do_step();
  int detached;
  MPI_Buffer_detach(&buffer, &detached);
  free(buffer);
  for (int i = 1; i < n_groups; ++i)
    if (groups[i].comm != MPI_COMM_SELF) MPI_Comm_free(&groups[i].comm);
  for (int i = 0; i < n_topologies; ++i) MPI_Comm_free(&topologies[i].comm);
  for (int i = 0; i < n_types; ++i)
    if (!types[i].named) MPI_Type_free(&types[i].type);
  if (world_rank == 0) printf("ok matrix\n");
  MPI_Finalize();
  return 0;
}
