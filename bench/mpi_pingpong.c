// SPDX-License-Identifier: Apache-2.0
// Ping-pong between two ranks, after OSU's osu_latency: one JSON line per size with the median half
// round trip. It is an ordinary MPI program; mpi_pingpong.py runs it without and with wirepress.
//
//   mpi_pingpong [--min BYTES] [--max BYTES] [--seconds S] [--data noise|floats|sparse|zeros]
//
// S is what the measured iterations of one size shall take (at least kLeast iterations).
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLeast = 3, kMost = 20000, kFirst = 3, kWarmup = 10, kTag = 1 };

typedef struct {
  long min, max;
  double seconds;
  const char *data;
} Options;

// All ranks find the same fault, and one says it.
static void usage(const char *complaint) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fprintf(stderr,
            "mpi_pingpong: %s\nusage: mpi_pingpong [--min BYTES] [--max BYTES] [--seconds S] "
            "[--data noise|floats|sparse|zeros]\n",
            complaint);
  MPI_Finalize();
  exit(2);
}

static Options options(int argc, char **argv) {
  Options o = {65536, 16 << 20, 0.2, "noise"};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) usage(argv[i]);
    const char *key = argv[i], *value = argv[i + 1];
    if (strcmp(key, "--min") == 0)
      o.min = atol(value);
    else if (strcmp(key, "--max") == 0)
      o.max = atol(value);
    else if (strcmp(key, "--seconds") == 0)
      o.seconds = atof(value);
    else if (strcmp(key, "--data") == 0)
      o.data = value;
    else
      usage(key);
  }
  if (o.min < 4 || o.max < o.min || o.max > 1 << 30) usage("sizes are 4 to 2^30 bytes");
  if (!(o.seconds > 0)) usage("--seconds must be above 0");
  if (strcmp(o.data, "noise") && strcmp(o.data, "floats") && strcmp(o.data, "sparse") &&
      strcmp(o.data, "zeros"))
    usage("--data must be noise, floats, sparse or zeros");
  return o;
}

static uint64_t next(uint64_t *state) {  // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// What a rank sends: noise cannot shrink, floats are a smooth field with a noisy end of the
// mantissa; sparse is noise in one KiB of four, zeros elsewhere.
static void fill(unsigned char *buffer, long size, const char *data, int rank) {
  uint64_t state = 1 + (uint64_t)rank;
  memset(buffer, 0, (size_t)size);
  for (long i = 0; data[0] == 'n' && i + 8 <= size; i += 8) {
    const uint64_t word = next(&state);
    memcpy(buffer + i, &word, 8);
  }
  for (long i = 0; data[0] == 's' && i + 8 <= size; i += 8) {
    const uint64_t word = next(&state);
    if (i / 1024 % 4 == 0) memcpy(buffer + i, &word, 8);
  }
  for (long i = 0; data[0] == 'f' && i + 4 <= size; i += 4) {
    const double noise = (double)(next(&state) >> 11) * 0x1p-53;
    const float value = (float)(sin(1e-3 * (double)i) + 1e-4 * noise);
    memcpy(buffer + i, &value, 4);
  }
}

static double half_trip(int rank, unsigned char *out, unsigned char *in, int size) {
  const double start = MPI_Wtime();
  if (rank == 0) MPI_Send(out, size, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
  MPI_Recv(in, size, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / 2;
}

// Rank 0 decides from the fastest of the first trips how many there will be, and tells.
static int agree(int rank, double half, double seconds) {
  int n = 0;
  const double wanted = seconds / (2 * half);
  if (rank == 0) n = wanted < kLeast ? kLeast : wanted > kMost ? kMost : (int)wanted;
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return n;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(int rank, int size, const Options *o, unsigned char *out, unsigned char *in,
                    const unsigned char *expected, double *trips) {
  memset(in, 0xaa, (size_t)size);
  for (int i = 0; i < kFirst; ++i) trips[i] = half_trip(rank, out, in, size);
  qsort(trips, kFirst, sizeof *trips, by_value);
  const int n = agree(rank, trips[0], o->seconds);
  for (int i = 0; i < n / 10 && i < kWarmup; ++i) half_trip(rank, out, in, size);
  for (int i = 0; i < n; ++i) trips[i] = half_trip(rank, out, in, size);
  if (memcmp(in, expected, (size_t)size) != 0) {
    fprintf(stderr, "mpi_pingpong: rank %d received wrong data at %d bytes\n", rank, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank != 0) return;
  qsort(trips, (size_t)n, sizeof *trips, by_value);
  printf(
      "{\"size\": %d, \"iterations\": %d, \"median_us\": %.3f, \"p10_us\": %.3f, "
      "\"p90_us\": %.3f}\n",
      size, n, 1e6 * trips[n / 2], 1e6 * trips[n / 10], 1e6 * trips[n - 1 - n / 10]);
  fflush(stdout);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Options o = options(argc, argv);
  if (ranks != 2) usage("needs two ranks");
  unsigned char *out = malloc((size_t)o.max), *in = malloc((size_t)o.max);
  unsigned char *expected = malloc((size_t)o.max);
  double *trips = malloc(kMost * sizeof *trips);
  if (!out || !in || !expected || !trips) {
    fprintf(stderr, "mpi_pingpong: rank %d has not enough memory\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  fill(out, o.max, o.data, rank);
  fill(expected, o.max, o.data, 1 - rank);
  for (long size = o.min; size <= o.max; size *= 2)
    measure(rank, (int)size, &o, out, in, expected, trips);
  free(out), free(in), free(expected), free(trips);
  MPI_Finalize();
  return 0;
}
