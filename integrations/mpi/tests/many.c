/* SPDX-License-Identifier: Apache-2.0
 * Many communicators at once, each with large collectives: argv[1] of them. MPICH has some 2,000.
 */
#include "check.h"

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? atoi(argv[1]) : 600, size = 64 << 10;
  MPI_Comm *all = malloc((size_t)n * sizeof *all);
  unsigned char *data = malloc((size_t)size);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < n; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
    for (int round = 0; round < 4; ++round) {
      if (rank == 0) fill(data, (size_t)size, TEXT, (unsigned)(i + round));
      MPI_Bcast(data, size, MPI_BYTE, 0, all[i]);
      CHECK(filled(data, (size_t)size, TEXT, (unsigned)(i + round)));
    }
  }
  for (int i = 0; i < n; ++i) MPI_Comm_free(&all[i]);
  if (rank == 0) printf("ok many\n");
  MPI_Finalize();
  free(all);
  free(data);
  return 0;
}
