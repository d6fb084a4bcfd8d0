/* SPDX-License-Identifier: Apache-2.0
 * Collectives of neighbours:
 *   edges wrong          two ranks, two edges each way. A call that takes less than is sent is
 *                        wrong; those after it must not take what it left.
 *   edges local|ring N   N kinds of calls along edges to the rank beside it, or around all */
#include "check.h"

enum { COUNT = 100 };
static int rank, size;

static void wrong(void) {
  MPI_Comm pair;
  const int other[2] = {1 - rank, 1 - rank}, weights[2] = {1, 1};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, other, weights, 2, other, weights,
                                 MPI_INFO_NULL, 0, &pair);
  int out[2 * COUNT], in[2 * COUNT];
  const int whole[2] = {COUNT, COUNT}, at[2] = {0, COUNT};
  for (int call = 0; call < 40; ++call) {
    const int taken[2] = {call % 4 == 0 ? 0 : COUNT, call % 4 == 2 ? 0 : COUNT};
    for (int i = 0; i < 2 * COUNT; ++i) out[i] = call * 10 + i / COUNT;
    memset(in, 0xEE, sizeof in);
    MPI_Neighbor_alltoallv(out, whole, at, MPI_INT, in, taken, at, MPI_INT, pair);
    if (call % 2 == 0) continue; /* that was the wrong one */
    for (int i = 0; i < 2 * COUNT; ++i) {
      CHECK(in[i] / 10 == call && in[i] % 10 < 2);
      CHECK(in[i] == in[i / COUNT * COUNT]);
    }
    CHECK(in[0] != in[COUNT]);
  }
  MPI_Comm_free(&pair);
}

static void count(int ring, int n_kinds) {
  const int local[1] = {rank ^ 1}, both[2] = {(rank + 1) % size, (rank + size - 1) % size};
  const int n = ring ? 2 : 1, *edges = ring ? both : local, weights[2] = {1, 1};
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, edges, weights, n, edges, weights,
                                 MPI_INFO_NULL, 0, &graph);
  int out[2] = {rank, rank}, in[2];
  const int ones[2] = {1, 1}, at[2] = {0, 1};
  const MPI_Aint bytes_at[2] = {0, 4};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  for (int kind = 0; kind < n_kinds; ++kind) {
    in[0] = in[1] = -1;
    if (kind == 0) MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph);
    if (kind == 1) MPI_Neighbor_alltoallv(out, ones, at, MPI_INT, in, ones, at, MPI_INT, graph);
    if (kind == 2)
      MPI_Neighbor_alltoallw(out, ones, bytes_at, types, in, ones, bytes_at, types, graph);
    for (int i = 0; i < n; ++i) CHECK(in[i] == edges[i]);
  }
  MPI_Comm_free(&graph);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 1);
  if (strcmp(argv[1], "wrong") == 0)
    wrong();
  else
    count(strcmp(argv[1], "ring") == 0, atoi(argv[2]));
  if (rank == 0) printf("ok edges\n");
  MPI_Finalize();
  return 0;
}
