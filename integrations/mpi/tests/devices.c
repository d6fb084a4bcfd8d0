// SPDX-License-Identifier: Apache-2.0
// Messages of many sizes between two ranks and by broadcast, every byte of which is compared:
//   devices N SEED [TIMES]
// Rank 0 prints how many came back right, and the seconds of the slowest one; it writes those of
// each as doubles to file TIMES.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200000 };

static unsigned next(unsigned *state) { return *state = *state * 1664525u + 1013904223u; }

static void fill(unsigned char *data, size_t n, unsigned seed) {
  unsigned state = seed;
  for (size_t i = 0; i < n; ++i) {
    const unsigned draw = next(&state);
    data[i] = (unsigned char)('a' + ((draw >> 28) & (draw >> 24) & 15));
  }
}

static int same(const unsigned char *data, unsigned char *wanted, size_t n, unsigned seed) {
  fill(wanted, n, seed);
  return memcmp(data, wanted, n) == 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const unsigned n_messages = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
  unsigned state = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  unsigned char *data = malloc(MOST), *wanted = malloc(MOST);
  FILE *times = rank == 0 && argc > 3 ? fopen(argv[3], "wb") : NULL;
  unsigned right = 0;
  double slowest = 0;
  for (unsigned i = 0; i < n_messages; ++i) {
    const int n = 1 + (int)(next(&state) >> 8) % (i % 8 == 0 ? MOST : MOST / 16);
    const unsigned seed = next(&state);
    const double start = MPI_Wtime();
    memset(data, 0, MOST);
    if (rank == 0) fill(data, (size_t)n, seed);
    if (i % 2 == 0) {
      MPI_Bcast(data, n, MPI_BYTE, 0, MPI_COMM_WORLD);
      right += (unsigned)same(data, wanted, (size_t)n, seed);
    } else if (rank == 0) {
      MPI_Send(data, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      memset(data, 0, MOST);
      MPI_Recv(data, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      right += (unsigned)same(data, wanted, (size_t)n, seed);
    } else if (rank == 1) {
      MPI_Recv(data, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      right += (unsigned)same(data, wanted, (size_t)n, seed);
      MPI_Send(data, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    } else {
      ++right;
    }
    const double seconds = MPI_Wtime() - start;
    if (seconds > slowest) slowest = seconds;
    if (times && fwrite(&seconds, sizeof seconds, 1, times) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  unsigned least = 0;
  MPI_Reduce(&right, &least, 1, MPI_UNSIGNED, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("devices %u right of %u, slowest %.3f s\n", least, n_messages, slowest);
  if (times) fclose(times);
  MPI_Finalize();
  return 0;
}
