/* SPDX-License-Identifier: Apache-2.0
 * Half round trips between ranks 0 and 1 in microseconds, one line per size: "SIZE MEDIAN MIN".
 * argv: largest size, and "noise" or "text" for what is sent. */
#include "check.h"

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 16 << 20;
  const int kind = argc > 2 && strcmp(argv[2], "text") == 0 ? TEXT : NOISE;
  unsigned char *out = malloc(most), *in = malloc(most);
  fill(out, most, kind, 1);
  memset(in, 0, most);
  for (size_t n = 64 << 10; n <= most; n *= 4) {
    const int rounds = n <= 1 << 20 ? 400 : n <= 4 << 20 ? 80 : 24;
    double *times = malloc((size_t)rounds * sizeof *times);
    for (int i = -rounds / 4; i < rounds; ++i) {
      const double start = MPI_Wtime();
      if (rank == 0) {
        MPI_Send(out, (int)n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, (int)n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (rank == 1) {
        MPI_Recv(in, (int)n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, (int)n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
      if (i >= 0) times[i] = (MPI_Wtime() - start) / 2 * 1e6;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_value);
    if (rank == 0) printf("%zu %.2f %.2f\n", n, times[rounds / 2], times[0]);
    free(times);
  }
  MPI_Finalize();
  return 0;
}
