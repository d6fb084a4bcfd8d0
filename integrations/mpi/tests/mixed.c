/* SPDX-License-Identifier: Apache-2.0
 * Two buffers of one size, of which one shrinks, in turns from one place: as mpi4py's calls all
 * come from one. Two ranks; sends, and sums by Allreduce. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { kBytes = 1 << 18, kRounds = 24 };

static unsigned char mine[2][kBytes], got[kBytes], sums[2][kBytes];

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int kind = TEXT; kind <= NOISE; ++kind) {
    fill(mine[kind], kBytes, kind, 7);
    for (int i = 0; i < kBytes; ++i) mine[kind][i] &= 0x7F; /* sums saturate in some MPIs */
    for (int i = 0; i < kBytes; ++i) sums[kind][i] = (unsigned char)(2 * mine[kind][i]);
  }
  for (int round = 0; round < kRounds; ++round) {
    const int kind = round % 2;
    if (rank == 0) MPI_Send(mine[kind], kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) {
      MPI_Recv(got, kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(memcmp(got, mine[kind], kBytes) == 0);
    }
    MPI_Allreduce(mine[kind], got, kBytes, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
    CHECK(memcmp(got, sums[kind], kBytes) == 0);
  }
  MPI_Finalize();
  printf("ok mixed\n");
  return 0;
}
