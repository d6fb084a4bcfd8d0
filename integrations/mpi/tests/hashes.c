/* SPDX-License-Identifier: Apache-2.0
 * A program whose results are the bytes that arrive: fields of float32, text and numbers between
 * all ranks, and a hash of all that came, which rank 0 prints: hashes ROUNDS Each round sends by
 * messages, a broadcast, an allgather and an exchange between neighbours. */
#include <math.h>

#include "check.h"

enum { VALUES = 6000 };

static uint64_t hash_of(uint64_t hash, const void *data, size_t n) {
  const unsigned char *p = data;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ p[i]) * 0x100000001B3u;
  return hash;
}

/* A wave with a little noise, and a run of zeros in it. */
static void make_field(float *field, int n, unsigned seed) {
  unsigned state = seed * 2654435761u + 1;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    field[i] =
        i % 1000 < 200 ? 0.0f : sinf((float)(i + (int)seed) / 40) + (float)(state >> 20) * 1e-6f;
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? atoi(argv[1]) : 2;
  float *field = malloc(VALUES * sizeof(float)), *got = malloc((size_t)size * VALUES * 4);
  char *text = malloc(3 * VALUES), *text_got = malloc(3 * VALUES);
  CHECK(field && got && text && text_got);
  uint64_t hash = 0xCBF29CE484222325u;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int round = 0; round < rounds; ++round) {
    const unsigned seed = (unsigned)(round * size + rank);
    make_field(field, VALUES, seed);
    MPI_Sendrecv(field, VALUES, MPI_FLOAT, next, 1, got, VALUES, MPI_FLOAT, before, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    hash = hash_of(hash, got, VALUES * 4);
    MPI_Allgather(field, VALUES, MPI_FLOAT, got, VALUES, MPI_FLOAT, MPI_COMM_WORLD);
    hash = hash_of(hash, got, (size_t)size * VALUES * 4);
    MPI_Bcast(field, VALUES, MPI_FLOAT, round % size, MPI_COMM_WORLD);
    hash = hash_of(hash, field, VALUES * 4);
    fill(text, 3 * VALUES, TEXT, seed);
    MPI_Sendrecv(text, 3 * VALUES, MPI_CHAR, next, 2, text_got, 3 * VALUES, MPI_CHAR, before, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    hash = hash_of(hash, text_got, 3 * VALUES);
    CHECK(filled(text_got, 3 * VALUES, TEXT, (unsigned)(round * size + before)));
  }
  uint64_t *all = malloc((size_t)size * sizeof(uint64_t));
  CHECK(all);
  MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("hash %016llx\n", (unsigned long long)hash_of(hash, all, (size_t)size * 8));
  MPI_Finalize();
  return 0;
}
