// SPDX-License-Identifier: Apache-2.0
// A file as a message, after OSU's osu_latency and osu_bcast: a ping-pong between ranks 0 and 1,
// and a broadcast to all. Rank 0 prints a JSON line: seconds of MPI_Init, of half a round trip and
// of a broadcast until its last rank has it, medians. device_messages.py runs it.
//
//   device_messages FILE REPEATS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Beside cores a device gets blocks as far as they pay, and a virtual one is slow with blocks that
// it sees for the first time: some messages go before it knows them all.
enum { kMost = 1000, kWarmup = 30 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int n) {
  qsort(values, (size_t)n, sizeof *values, by_value);
  return values[n / 2];
}

static void fail(const char *why) {
  fprintf(stderr, "device_messages: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char *read_file(const char *path, int *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail("no such file");
  fseek(file, 0, SEEK_END);
  *size = (int)ftell(file);
  rewind(file);
  unsigned char *data = malloc((size_t)*size);
  if (!data || fread(data, 1, (size_t)*size, file) != (size_t)*size) fail("cannot read the file");
  fclose(file);
  return data;
}

static double half_trip(int rank, unsigned char *data, int size) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  if (rank == 0) MPI_Send(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (rank < 2) MPI_Recv(data, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / 2;
}

static double broadcast(unsigned char *data, int size) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Bcast(data, size, MPI_BYTE, 0, MPI_COMM_WORLD);
  double own = MPI_Wtime() - start, last = 0;
  MPI_Reduce(&own, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return last;
}

// Where the user may, ranks come before other programs.
static void hurry(void) {
  FILE *group = fopen("/proc/self/autogroup", "w");  // of the session, which has a share of its own
  if (group) {
    fputs("-20", group);
    fclose(group);
  }
  if (setpriority(PRIO_PROCESS, 0, -20) != 0) return;
}

int main(int argc, char **argv) {
  hurry();
  const double before = MPI_Wtime();
  MPI_Init(&argc, &argv);
  const double init = MPI_Wtime() - before;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int n = argc == 3 ? atoi(argv[2]) : 0;
  if (n < 1 || n > kMost) fail("usage: device_messages FILE REPEATS (1 to 1000)");
  unsigned char *data = read_file(argv[1], &size), *expected = malloc((size_t)size);
  if (!expected) fail("not enough memory");
  memcpy(expected, data, (size_t)size);
  double trips[kMost], broadcasts[kMost];
  for (int i = -kWarmup; i < n; ++i) {
    if (rank != 0) memset(data, 0xaa, (size_t)size);
    const double seconds = half_trip(rank, data, size);
    if (rank < 2 && memcmp(data, expected, (size_t)size) != 0)
      fail("a ping-pong brought other bytes");
    if (i >= 0) trips[i] = seconds;
  }
  for (int i = -kWarmup; i < n; ++i) {
    if (rank != 0) memset(data, 0xaa, (size_t)size);
    const double seconds = broadcast(data, size);
    if (memcmp(data, expected, (size_t)size) != 0) fail("a broadcast brought other bytes");
    if (i >= 0) broadcasts[i] = seconds;
  }
  if (rank == 0)
    printf("{\"bytes\": %d, \"init\": %.6f, \"latency\": %.6f, \"broadcast\": %.6f}\n", size, init,
           median(trips, n), median(broadcasts, n));
  MPI_Finalize();
  free(data), free(expected);
  return 0;
}
