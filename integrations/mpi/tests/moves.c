/* SPDX-License-Identifier: Apache-2.0
 * Gather, Scatter, Allgather, Alltoall and their v and w forms: from every root, in place, empty
 * and ragged blocks, types with gaps, other types on the other side, arguments that only the root
 * may look at. */
#include "check.h"

static MPI_Comm comm;
static int rank, size;

#define ROOM (24u << 20)
static unsigned char *from, *to;
static void *volatile kNowhere = (void *)64; /* whoever looks there is wrong */

/* A block that travels from a to b: of whole ints, with text or noise in it. */
static unsigned seed(int a, int b) { return (unsigned)(a * 17 + b * 3 + 1); }
static int kind(int a, int b) { return (a + b) % 3 == 2 ? NOISE : TEXT; }

enum { EMPTY, SMALL, MIXED, WHOLE_CHUNKS, ONE_SIDED, N_SHAPES };
static int ints(int shape, int a, int b) {
  switch (shape) {
    case EMPTY:
      return 0;
    case SMALL:
      return 1 + a + b;
    case MIXED:
      return (a + b) % 4 == 3 ? 0 : (a + b) % 4 == 2 ? 100 : 30000 + 1000 * a + 7 * b;
    case WHOLE_CHUNKS:
      return 32768 * (1 + (a + 2 * b) % 3);
    default:
      return a == 0 ? 150001 : b == 0 ? 40000 : 0;
  }
}

/* Two ints, then a gap of two: a block of n ints (even n) is n / 2 of it. */
static MPI_Datatype gappy;
static void make_gappy(void) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 16, &gappy);
  MPI_Type_commit(&gappy);
  MPI_Type_free(&pair);
}

static void put_block(int gaps, void *buffer, int n, int a, int b) {
  unsigned char *p = buffer;
  const size_t step = gaps ? 8 : (size_t)n * 4;
  for (size_t i = 0; i < (size_t)n * 4; i += step)
    fill_from(i, p + (gaps ? 2 * i : i), step, kind(a, b), seed(a, b));
}

static void check_block(int gaps, const void *buffer, int n, int a, int b) {
  const unsigned char *p = buffer;
  if (!gaps) {
    CHECK(filled(p, (size_t)n * 4, kind(a, b), seed(a, b)));
    return;
  }
  for (size_t i = 0; i < (size_t)n * 4; i += 8) {
    CHECK(filled_from(i, p + 2 * i, 8, kind(a, b), seed(a, b)));
    CHECK(all_bytes(p + 2 * i + 8, 8, 0xEE));
  }
}

static int counts[64], at[64], back[64], back_at[64];
static MPI_Datatype types[64], back_types[64];

/* Lays blocks of counts[] ints behind each other, `gap` ints apart; in ints. */
static int lay(const int *n, int *where, int gap) {
  int begin = 0;
  for (int r = 0; r < size; ++r) {
    where[r] = begin;
    begin += n[r] + gap;
  }
  CHECK((size_t)begin * 4 <= ROOM);
  return begin;
}

static void gathers(int shape, int root) {
  const int me_gaps = rank % 2, n = ints(shape, rank, root) & ~1;
  for (int r = 0; r < size; ++r) counts[r] = ints(shape, r, root) & ~1;
  const int end = lay(counts, at, 3);
  for (int in_place = 0; in_place < 2; ++in_place) {
    memset(to, 0xEE, (size_t)end * 4);
    memset(from, 0xEE, (size_t)n * 8);
    const int placed = in_place && rank == root;
    put_block(me_gaps && !placed, placed ? (void *)(to + at[rank] * 4) : from, n, rank, root);
    const void *mine = placed ? MPI_IN_PLACE : from;
    const int n_mine = placed ? -5 : me_gaps ? n / 2 : n;
    const MPI_Datatype type = placed ? MPI_DATATYPE_NULL : me_gaps ? gappy : MPI_INT;
    if (rank == root)
      MPI_Gatherv(mine, n_mine, type, to, counts, at, MPI_INT, root, comm);
    else
      MPI_Gatherv(mine, n_mine, type, kNowhere, kNowhere, kNowhere, MPI_DATATYPE_NULL, root, comm);
    for (int r = 0; r < size && rank == root; ++r) {
      check_block(0, to + at[r] * 4, counts[r], r, root);
      CHECK(all_bytes(to + (at[r] + counts[r]) * 4, 12, 0xEE));
    }
    /* and back again */
    memset(from, 0xEE, (size_t)n * 8 + 16);
    void *mine_back = placed ? MPI_IN_PLACE : from;
    if (rank == root)
      MPI_Scatterv(to, counts, at, MPI_INT, mine_back, n_mine, type, root, comm);
    else
      MPI_Scatterv(kNowhere, kNowhere, kNowhere, MPI_DATATYPE_NULL, mine_back, n_mine, type, root,
                   comm);
    if (!placed) {
      check_block(me_gaps, from, n, rank, root);
      CHECK(all_bytes(from + (me_gaps ? 8 : 4) * n, 16, 0xEE));
    }
  }
}

static void equal_gathers(int n, int root) {
  const int gaps = rank % 2;
  for (int in_place = 0; in_place < 2; ++in_place) {
    const int placed = in_place && rank == root;
    memset(to, 0xEE, (size_t)n * 4 * (size_t)size + 8);
    memset(from, 0xEE, (size_t)n * 8 + 16);
    put_block(gaps && !placed, placed ? to + (size_t)n * 4 * (size_t)rank : from, n, rank, root);
    void *mine = placed ? MPI_IN_PLACE : from;
    const int n_mine = placed ? -5 : gaps ? n / 2 : n;
    const MPI_Datatype type = placed ? MPI_DATATYPE_NULL : gaps ? gappy : MPI_INT;
    if (rank == root)
      MPI_Gather(mine, n_mine, type, to, n, MPI_INT, root, comm);
    else
      MPI_Gather(mine, n_mine, type, kNowhere, -7, MPI_DATATYPE_NULL, root, comm);
    for (int r = 0; r < size && rank == root; ++r)
      check_block(0, to + (size_t)n * 4 * (size_t)r, n, r, root);
    memset(from, 0xEE, (size_t)n * 8 + 16);
    if (rank == root)
      MPI_Scatter(to, n, MPI_INT, mine, n_mine, type, root, comm);
    else
      MPI_Scatter(kNowhere, -7, MPI_DATATYPE_NULL, mine, n_mine, type, root, comm);
    if (!placed) check_block(gaps, from, n, rank, root);
  }
}

/* The same type everywhere: with several, MPICH and Open MPI may never return. */
static void allgathers(int shape, int gaps) {
  for (int r = 0; r < size; ++r) counts[r] = ints(shape, r, 0) & ~1;
  for (int r = 0; r < size; ++r) back[r] = counts[r] / 2;
  const int end = lay(counts, at, 2);
  for (int in_place = 0; in_place < 2; ++in_place) {
    /* in units of the type: ints, or pairs with gaps */
    int where[64];
    for (int r = 0; r < size; ++r) where[r] = gaps ? at[r] / 2 : at[r];
    memset(to, 0xEE, (size_t)end * 8);
    const size_t unit = gaps ? 8 : 4;
    void *mine = in_place ? to + (size_t)at[rank] * unit : from;
    put_block(gaps && in_place, mine, counts[rank], rank, 5);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, counts[rank], MPI_INT, to, gaps ? back : counts,
                   where, gaps ? gappy : MPI_INT, comm);
    for (int r = 0; r < size; ++r) {
      check_block(gaps, to + (size_t)at[r] * unit, counts[r], r, 5);
      CHECK(all_bytes(to + (size_t)(at[r] + counts[r]) * unit, 8, 0xEE));
    }
  }
}

static void alltoalls(int shape, int w) {
  for (int r = 0; r < size; ++r) {
    counts[r] = ints(shape, rank, r) & ~1;
    back[r] = ints(shape, r, rank) & ~1;
  }
  lay(counts, at, 2);
  const int end = lay(back, back_at, 2);
  for (int r = 0; r < size; ++r) put_block(0, from + at[r] * 4, counts[r], rank, r);
  memset(to, 0xEE, (size_t)end * 8);
  if (!w) {
    MPI_Alltoallv(from, counts, at, MPI_INT, to, back, back_at, MPI_INT, comm);
  } else {
    for (int r = 0; r < size; ++r) {
      const int gaps = (rank + r) % 2;
      types[r] = MPI_INT;
      back_types[r] = gaps ? gappy : MPI_INT;
      if (gaps) back[r] /= 2;
      at[r] *= 4, back_at[r] *= 8;
    }
    MPI_Alltoallw(from, counts, at, types, to, back, back_at, back_types, comm);
  }
  for (int r = 0; r < size; ++r) {
    const int n = ints(shape, r, rank) & ~1, gaps = w && (rank + r) % 2;
    const size_t begin = (size_t)back_at[r] * (w ? 1 : 4);
    check_block(gaps, to + begin, n, r, rank);
    CHECK(all_bytes(to + begin + (size_t)n * (gaps ? 8 : 4), 8, 0xEE));
  }
}

/* In place the sizes are the same both ways. */
static void alltoalls_in_place(int shape) {
  for (int r = 0; r < size; ++r) {
    counts[r] = (ints(shape, rank, r) + ints(shape, r, rank)) & ~1;
    types[r] = MPI_INT;
  }
  lay(counts, at, 2);
  for (int w = 0; w < 2; ++w) {
    for (int r = 0; r < size; ++r) put_block(0, to + at[r] * 4, counts[r], rank, r);
    for (int r = 0; r < size; ++r) back_at[r] = at[r] * 4;
    if (w)
      MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, to, counts, back_at, types, comm);
    else
      MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, to, counts, at, MPI_INT, comm);
    for (int r = 0; r < size; ++r) check_block(0, to + at[r] * 4, counts[r], r, rank);
  }
}

static void equal_alltoalls(int n) {
  const size_t bytes = (size_t)n * 4;
  for (int way = 0; way < 3; ++way) {
    memset(to, 0xEE, bytes * 2 * (size_t)size + 8);
    for (int r = 0; r < size; ++r)
      put_block(0, (way == 1 ? to : from) + bytes * (size_t)r, n, rank, r);
    if (way == 0) MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, comm);
    if (way == 1) MPI_Alltoall(MPI_IN_PLACE, -5, MPI_DATATYPE_NULL, to, n, MPI_INT, comm);
    const int gaps = way == 2 && rank % 2;
    if (way == 2)
      MPI_Alltoall(from, n, MPI_INT, to, gaps ? n / 2 : n, gaps ? gappy : MPI_INT, comm);
    for (int r = 0; r < size; ++r)
      check_block(gaps, to + bytes * (size_t)r * (gaps ? 2 : 1), n, r, rank);
  }
}

static void large_counts(void) {
#if MPI_VERSION >= 4
  MPI_Count n[64];
  MPI_Aint where[64], where_bytes[64];
  for (int r = 0; r < size; ++r) {
    n[r] = 30000;
    where[r] = r * 30001;
    where_bytes[r] = r * 120004;
    types[r] = MPI_INT;
    put_block(0, from + where_bytes[r], 30000, rank, r);
  }
  for (int way = 0; way < 8; ++way) {
    memset(to, 0xEE, (size_t)size * 120004);
    if (way == 0) MPI_Alltoallv_c(from, n, where, MPI_INT, to, n, where, MPI_INT, comm);
    if (way == 1) MPI_Alltoallw_c(from, n, where_bytes, types, to, n, where_bytes, types, comm);
    if (way < 2)
      for (int r = 0; r < size; ++r) check_block(0, to + where_bytes[r], 30000, r, rank);
    if (way == 2) MPI_Gatherv_c(from, 30000, MPI_INT, to, n, where, MPI_INT, 0, comm);
    if (way == 3) MPI_Allgatherv_c(from, 30000, MPI_INT, to, n, where, MPI_INT, comm);
    if (way == 3 || (way == 2 && rank == 0))
      for (int r = 0; r < size; ++r) check_block(0, to + where_bytes[r], 30000, r, 0);
    if (way == 4) MPI_Scatterv_c(from, n, where, MPI_INT, to, 30000, MPI_INT, 0, comm);
    if (way == 4) check_block(0, to, 30000, 0, rank);
    if (way == 5) MPI_Gather_c(from, 30000, MPI_INT, to, 30000, MPI_INT, 0, comm);
    if (way == 5 && rank == 0)
      for (int r = 0; r < size; ++r) check_block(0, to + r * 120000, 30000, r, 0);
    if (way == 6) MPI_Scatter_c(from, 30000, MPI_INT, to, 30000, MPI_INT, 0, comm);
    if (way == 6 && rank == 0) check_block(0, to, 30000, 0, 0);
    if (way == 7) MPI_Alltoall_c(from, 30000, MPI_INT, to, 30000, MPI_INT, comm);
    if (way == 7 && rank == 0) check_block(0, to, 30000, 0, 0);
  }
#endif
}

/* From group to group: left to MPI. */
static void between_groups(void) {
  if (size < 2) return;
  MPI_Comm half, inter;
  const int side = rank % 2;
  MPI_Comm_split(comm, side, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - side, 3, &inter);
  int others;
  MPI_Comm_remote_size(inter, &others);
  const int n = 40000;
  for (int r = 0; r < others; ++r) {
    counts[r] = n;
    at[r] = r * n;
    put_block(0, from + (size_t)r * n * 4, n, rank, 2 * r + 1 - side);
  }
  MPI_Alltoallv(from, counts, at, MPI_INT, to, counts, at, MPI_INT, inter);
  for (int r = 0; r < others; ++r)
    check_block(0, to + (size_t)r * n * 4, n, 2 * r + 1 - side, rank);
  int local;
  MPI_Comm_rank(inter, &local);
  if (side == 0)
    MPI_Gatherv(NULL, 0, MPI_INT, to, counts, at, MPI_INT, local ? MPI_PROC_NULL : MPI_ROOT, inter);
  else
    MPI_Gatherv(from, n, MPI_INT, NULL, NULL, NULL, MPI_INT, 0, inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/* Less comes than there is room for: not allowed, and done. */
static void too_little(void) {
  static const int sent[] = {1, 8192, 20000, 65536, 70000};
  const int n = 70001;
  for (int i = 0; i < 5; ++i) {
    for (int r = 0; r < size; ++r) counts[r] = n, at[r] = r * n;
    put_block(0, from, sent[i], rank, 0);
    memset(to, 0xEE, (size_t)size * n * 4);
    MPI_Gatherv(from, sent[i], MPI_INT, to, counts, at, MPI_INT, 0, comm);
    for (int r = 0; r < size && rank == 0; ++r) {
      check_block(0, to + (size_t)r * n * 4, sent[i], r, 0);
      CHECK(all_bytes(to + ((size_t)r * n + sent[i]) * 4, (size_t)(n - sent[i]) * 4, 0xEE));
    }
  }
}

/* More comes than there is room for: an error where it does, and the next call is right. */
static void too_much(void) {
  if (size < 2) return;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int n = 70000;
  for (int r = 0; r < size; ++r) {
    counts[r] = r == 1 && rank == 0 ? n / 2 : n;
    at[r] = r * n;
    put_block(0, from + (size_t)r * n * 4, n, rank, r);
  }
  put_block(0, from, n, rank, 0);
  memset(to, 0xEE, (size_t)size * n * 4);
  const int error = MPI_Gatherv(from, n, MPI_INT, to, counts, at, MPI_INT, 0, comm);
  int kind = MPI_SUCCESS;
  if (error) MPI_Error_class(error, &kind);
  CHECK(rank == 0 ? kind == MPI_ERR_TRUNCATE : kind == MPI_SUCCESS);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  gathers(MIXED, 0);
}

static void all(const char *name) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int shape = 0; shape < N_SHAPES; ++shape) {
    for (int root = 0; root < size; ++root) gathers(shape, root);
    allgathers(shape, shape % 2);
    alltoalls(shape, 0);
    alltoalls(shape, 1);
    alltoalls_in_place(shape);
  }
  for (int n = 0; n <= 60000; n = n * 20 + 6) {
    equal_gathers(n, n % size);
    equal_alltoalls(n);
  }
  equal_gathers(65536, size - 1);
  equal_alltoalls(32768);
  too_little();
  large_counts();
  between_groups();
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  if (world == 0) printf("ok %s\n", name), fflush(stdout);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  from = malloc(ROOM), to = malloc(ROOM);
  make_gappy();
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  comm = MPI_COMM_WORLD;
  all("world");
  if (argc > 1) too_much();
  MPI_Comm_split(MPI_COMM_WORLD, 0, (world * 5 + 3) % 4, &comm); /* nodes interleaved */
  all("shuffled");
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, world == 0, world, &comm);
  all("all but one");
  MPI_Comm_free(&comm);
  MPI_Type_free(&gappy);
  MPI_Finalize();
  return 0;
}
