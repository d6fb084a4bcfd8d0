/* SPDX-License-Identifier: Apache-2.0
 * Times MPI calls with the interposer below against the same calls without it, in one job: MPI_Send
 * goes through a preloaded library, PMPI_Send does not. Blocks of both alternate, so that both see
 * the same machine.
 *
 *   mpi_calls CALL=pingpong,bcast KIND=text,dense SIZE=65536,1048576 [PAIRS=7] [BLOCK=0.005]
 *             [MOST=2] [WARM=12] [RING=1] [COMPUTE=0.5]
 *
 * Prints a line of JSON for each (call, kind, size): seconds of one operation, the slowest rank's,
 * of each block. BLOCK: seconds that a block shall last; MOST: of a measurement, when it stops
 * early (3 pairs at least). WARM: operations through the library before. RING=1: allreduce is
 * measured against a ring written with plain MPI too. COMPUTE: the rank is busy for so many times
 * what plain MPI takes, between the start of a non-blocking call and its end. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE, TEXT, DENSE, SPARSE, SMOOTH, ZEROS, KINDS };
static const char *const kKinds[KINDS] = {"noise", "text", "dense", "sparse", "smooth", "zeros"};
enum {
  PINGPONG,
  EXCHANGE,
  BCAST,
  ALLREDUCE,
  ALLGATHER,
  ALLTOALL,
  NEIGHBORS,
  IBCAST,
  IALLREDUCE,
  IALLGATHER,
  IALLTOALL,
  CALLS
};
static const char *const kCalls[CALLS] = {"pingpong",   "exchange",   "bcast",     "allreduce",
                                          "allgather",  "alltoall",   "neighbors", "ibcast",
                                          "iallreduce", "iallgather", "ialltoall"};
enum { PLAIN, OURS, RING_ALLREDUCE, MODES };

static int g_rank, g_ranks;
static char *g_send, *g_receive, *g_work;
static double g_busy; /* seconds between start and end of a non-blocking call */

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* About normally distributed. */
static double normal(uint64_t i) {
  double sum = 0;
  for (uint64_t k = 0; k < 6; ++k) sum += (double)(mix(6 * i + k + 1) >> 11) / 9007199254740992.0;
  return (sum - 3) * 1.41;
}

static void fill(int kind, char *data, size_t size) {
  static const char *const words[] = {"rank ",  "message ", "of the ", "node ",  "and ", "a ",
                                      "field ", "step ",    "1024 ",   "0.125 ", "is ",  "sent\n"};
  const uint64_t seed = (uint64_t)g_rank << 40;
  memset(data, 0, size);
  switch (kind) {
    case NOISE:
      for (size_t i = 0; i + 8 <= size; i += 8) {
        const uint64_t word = mix(seed + i + 1);
        memcpy(data + i, &word, 8);
      }
      break;
    case TEXT:
      for (size_t at = 0, i = 0; at < size; ++i) {
        const char *word = words[mix(seed + i + 1) % 12];
        for (; *word && at < size; ++word) data[at++] = *word;
      }
      break;
    case DENSE: /* as gradients of a dense layer: no zeros, exponents near each other */
      for (size_t i = 0; i < size / 4; ++i) ((float *)data)[i] = (float)(1e-3 * normal(seed + i));
      break;
    case SPARSE: /* as gradients of an embedding: of 20 rows of 64 one is not zero */
      for (size_t i = 0; i < size / 4; ++i)
        if (mix(seed + i / 64) % 20 == 0) ((float *)data)[i] = (float)(1e-3 * normal(seed + i));
      break;
    case SMOOTH:
      for (size_t i = 0; i < size / 8; ++i)
        ((double *)data)[i] = sin(1e-4 * (double)i + g_rank) + 0.5 * sin(3e-3 * (double)i);
      break;
    default:
      break;
  }
}

static MPI_Datatype type_of(int kind) {
  return kind == SMOOTH ? MPI_DOUBLE : kind == NOISE || kind == TEXT ? MPI_INT : MPI_FLOAT;
}
static size_t element_of(int kind) { return kind == SMOOTH ? 8 : 4; }

static void compute(void) {
  const double start = PMPI_Wtime();
  while (PMPI_Wtime() - start < g_busy) {
  }
}

/* One call: `size` bytes a message; of collectives in all, of alltoall and to both neighbours of a
 * ring from one rank. Each kind has functions of its own, as data of a kind come from a place of
 * their own in programs. */
#define DEFINE(NAME, P)                                                                           \
  static __attribute__((noinline)) void NAME(int call, MPI_Comm comm, int n, MPI_Datatype type) { \
    const int peer = 1 - g_rank, part = n / g_ranks;                                              \
    MPI_Request requests[2];                                                                      \
    switch (call) {                                                                               \
      case PINGPONG:                                                                              \
        if (g_rank == 0) {                                                                        \
          P##MPI_Send(g_send, n, type, 1, 1, comm);                                               \
          P##MPI_Recv(g_receive, n, type, 1, 1, comm, MPI_STATUS_IGNORE);                         \
        } else if (g_rank == 1) {                                                                 \
          P##MPI_Recv(g_receive, n, type, 0, 1, comm, MPI_STATUS_IGNORE);                         \
          P##MPI_Send(g_send, n, type, 0, 1, comm);                                               \
        }                                                                                         \
        break;                                                                                    \
      case EXCHANGE:                                                                              \
        if (g_rank > 1) break;                                                                    \
        P##MPI_Irecv(g_receive, n, type, peer, 1, comm, &requests[0]);                            \
        P##MPI_Isend(g_send, n, type, peer, 1, comm, &requests[1]);                               \
        P##MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);                                         \
        break;                                                                                    \
      case BCAST:                                                                                 \
        P##MPI_Bcast(g_send, n, type, 0, comm);                                                   \
        break;                                                                                    \
      case ALLREDUCE:                                                                             \
        P##MPI_Allreduce(g_send, g_receive, n, type, MPI_SUM, comm);                              \
        break;                                                                                    \
      case ALLGATHER:                                                                             \
        P##MPI_Allgather(g_send, part, type, g_receive, part, type, comm);                        \
        break;                                                                                    \
      case ALLTOALL:                                                                              \
        P##MPI_Alltoall(g_send, part, type, g_receive, part, type, comm);                         \
        break;                                                                                    \
      case NEIGHBORS:                                                                             \
        P##MPI_Neighbor_alltoall(g_send, n / 2, type, g_receive, n / 2, type, comm);              \
        break;                                                                                    \
      case IBCAST:                                                                                \
        P##MPI_Ibcast(g_send, n, type, 0, comm, requests);                                        \
        compute();                                                                                \
        P##MPI_Wait(requests, MPI_STATUS_IGNORE);                                                 \
        break;                                                                                    \
      case IALLREDUCE:                                                                            \
        P##MPI_Iallreduce(g_send, g_receive, n, type, MPI_SUM, comm, requests);                   \
        compute();                                                                                \
        P##MPI_Wait(requests, MPI_STATUS_IGNORE);                                                 \
        break;                                                                                    \
      case IALLGATHER:                                                                            \
        P##MPI_Iallgather(g_send, part, type, g_receive, part, type, comm, requests);             \
        compute();                                                                                \
        P##MPI_Wait(requests, MPI_STATUS_IGNORE);                                                 \
        break;                                                                                    \
      case IALLTOALL:                                                                             \
        P##MPI_Ialltoall(g_send, part, type, g_receive, part, type, comm, requests);              \
        compute();                                                                                \
        P##MPI_Wait(requests, MPI_STATUS_IGNORE);                                                 \
        break;                                                                                    \
      default:                                                                                    \
        break;                                                                                    \
    }                                                                                             \
  }
DEFINE(plain, P)
DEFINE(ours_noise, )
DEFINE(ours_text, )
DEFINE(ours_dense, )
DEFINE(ours_sparse, )
DEFINE(ours_smooth, )
DEFINE(ours_zeros, )
#undef DEFINE
static void (*const g_ours[KINDS])(int, MPI_Comm, int, MPI_Datatype) = {
    ours_noise, ours_text, ours_dense, ours_sparse, ours_smooth, ours_zeros};

/* Reduce-scatter and allgather in a ring, in chunks that fly while the last one is summed: what a
 * good algorithm gives without compression. */
static void ring_allreduce(MPI_Comm comm, int n, MPI_Datatype type, size_t element) {
  const int next = (g_rank + 1) % g_ranks, previous = (g_rank + g_ranks - 1) % g_ranks;
  const int chunk = (512 << 10) / (int)element;
  memcpy(g_receive, g_send, (size_t)n * element);
  for (int step = 0; step < 2 * (g_ranks - 1); ++step) {
    const int reduce = step < g_ranks - 1;
    const int out = (g_rank - step + 2 * g_ranks + (reduce ? 0 : 0)) % g_ranks;
    const int in = (out + g_ranks - 1) % g_ranks;
    const int out_begin = (int)((int64_t)n * out / g_ranks);
    const int out_end = (int)((int64_t)n * (out + 1) / g_ranks);
    const int in_begin = (int)((int64_t)n * in / g_ranks);
    const int in_end = (int)((int64_t)n * (in + 1) / g_ranks);
    const int n_out = (out_end - out_begin + chunk - 1) / chunk;
    const int n_in = (in_end - in_begin + chunk - 1) / chunk;
    MPI_Request *sends = malloc(((size_t)n_out + 1) * sizeof *sends);
    MPI_Request *receives = malloc(((size_t)n_in + 1) * sizeof *receives);
    char *landing = reduce ? g_work : g_receive;
    for (int c = 0; c < n_in; ++c) {
      const int begin = in_begin + c * chunk, end = begin + chunk < in_end ? begin + chunk : in_end;
      PMPI_Irecv(landing + (size_t)begin * element, end - begin, type, previous, 2, comm,
                 &receives[c]);
    }
    for (int c = 0; c < n_out; ++c) {
      const int begin = out_begin + c * chunk;
      const int end = begin + chunk < out_end ? begin + chunk : out_end;
      PMPI_Isend(g_receive + (size_t)begin * element, end - begin, type, next, 2, comm, &sends[c]);
    }
    for (int c = 0; c < n_in; ++c) {
      const int begin = in_begin + c * chunk, end = begin + chunk < in_end ? begin + chunk : in_end;
      PMPI_Wait(&receives[c], MPI_STATUS_IGNORE);
      if (reduce)
        PMPI_Reduce_local(g_work + (size_t)begin * element, g_receive + (size_t)begin * element,
                          end - begin, type, MPI_SUM);
    }
    PMPI_Waitall(n_out, sends, MPI_STATUSES_IGNORE);
    free(sends);
    free(receives);
  }
}

static double block(int mode, int call, int kind, MPI_Comm comm, int n, int operations) {
  const MPI_Datatype type = type_of(kind);
  PMPI_Barrier(comm);
  const double start = PMPI_Wtime();
  for (int i = 0; i < operations; ++i) {
    if (mode == RING_ALLREDUCE)
      ring_allreduce(comm, n, type, element_of(kind));
    else
      (mode == OURS ? g_ours[kind] : plain)(call, comm, n, type);
  }
  double seconds = (PMPI_Wtime() - start) / operations, slowest = 0;
  PMPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
  return slowest;
}

struct plan {
  int pairs, warm, ring;
  double block, most, compute;
};

static void measure(const struct plan *plan, int call, int kind, MPI_Comm comm, size_t size) {
  enum { kMostPairs = 64 };
  double seconds[MODES][kMostPairs];
  const int n = (int)(size / element_of(kind));
  const int modes = plan->ring && call == ALLREDUCE ? MODES : RING_ALLREDUCE;
  if (n < (call >= ALLGATHER ? g_ranks : 1)) return;
  g_busy = 0;
  block(PLAIN, call, kind, comm, n, 1);
  const double once = block(PLAIN, call, kind, comm, n, 2);
  g_busy = plan->compute * once;
  /* Whatever adapts does so before: 30 blocks' worth where calls are short. */
  const double warm_for = fmin(30 * plan->block, 40 * once);
  int warm = (int)fmax(plan->warm, warm_for / fmax(once, 1e-7));
  if (warm > 20000) warm = 20000;
  block(OURS, call, kind, comm, n, warm);
  int operations = (int)fmax(1, plan->block / fmax(once, 1e-7));
  PMPI_Bcast(&operations, 1, MPI_INT, 0, comm);
  int pair = 0;
  const double start = PMPI_Wtime();
  for (int go = 1; go && pair < plan->pairs && pair < kMostPairs; ++pair) {
    for (int i = 0; i < modes; ++i) { /* who goes first alternates */
      const int mode = (i + pair) % modes;
      seconds[mode][pair] = block(mode, call, kind, comm, n, operations);
    }
    go = pair < 2 || PMPI_Wtime() - start < plan->most;
    PMPI_Bcast(&go, 1, MPI_INT, 0, comm);
  }
  if (g_rank != 0) return;
  static const char *const names[MODES] = {"plain", "ours", "ring"};
  printf("{\"call\": \"%s\", \"kind\": \"%s\", \"size\": %zu, \"operations\": %d", kCalls[call],
         kKinds[kind], size, operations);
  for (int mode = 0; mode < modes; ++mode) {
    printf(", \"%s\": [", names[mode]);
    for (int i = 0; i < pair; ++i) printf("%s%.4g", i ? ", " : "", seconds[mode][i]);
    printf("]");
  }
  printf("}\n");
  fflush(stdout);
}

static int listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); ++at) {
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0)) return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *calls = "pingpong", *kinds = "text", *sizes = "65536";
  struct plan plan = {7, 12, 0, 0.005, 2, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
  for (int i = 1; i < argc; ++i) {
    const char *value = strchr(argv[i], '=');
    if (!value) continue;
    ++value;
    if (strncmp(argv[i], "CALL=", 5) == 0) calls = value;
    if (strncmp(argv[i], "KIND=", 5) == 0) kinds = value;
    if (strncmp(argv[i], "SIZE=", 5) == 0) sizes = value;
    if (strncmp(argv[i], "PAIRS=", 6) == 0) plan.pairs = atoi(value);
    if (strncmp(argv[i], "WARM=", 5) == 0) plan.warm = atoi(value);
    if (strncmp(argv[i], "RING=", 5) == 0) plan.ring = atoi(value);
    if (strncmp(argv[i], "BLOCK=", 6) == 0) plan.block = atof(value);
    if (strncmp(argv[i], "MOST=", 5) == 0) plan.most = atof(value);
    if (strncmp(argv[i], "COMPUTE=", 8) == 0) plan.compute = atof(value);
  }
  size_t largest = 0;
  for (const char *at = sizes; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    const size_t size = strtoull(at, NULL, 10);
    if (size > largest) largest = size;
  }
  g_send = malloc(largest + 64);
  g_receive = malloc(largest + 64);
  g_work = malloc(largest + 64);
  memset(g_receive, 0, largest + 64);
  for (int kind = 0; kind < KINDS; ++kind) {
    if (!listed(kinds, kKinds[kind])) continue;
    fill(kind, g_send, largest);
    MPI_Comm comm;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &g_ranks, &(int){1}, 0, &comm);
    for (int call = 0; call < CALLS; ++call) {
      if (!listed(calls, kCalls[call])) continue;
      for (const char *at = sizes; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        measure(&plan, call, kind, comm, strtoull(at, NULL, 10));
    }
    MPI_Comm_free(&comm);
  }
  free(g_send);
  free(g_receive);
  free(g_work);
  MPI_Finalize();
  return 0;
}
