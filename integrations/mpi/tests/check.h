/* SPDX-License-Identifier: Apache-2.0
 * What the test programs share: data that compresses or does not, and checks that end the job. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                    \
  do {                                                                                 \
    if (!(what)) {                                                                     \
      int check_rank_;                                                                 \
      MPI_Comm_rank(MPI_COMM_WORLD, &check_rank_);                                     \
      fprintf(stderr, "rank %d: %s:%d: %s\n", check_rank_, __FILE__, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                    \
    }                                                                                  \
  } while (0)

enum { TEXT = 0, NOISE = 1, SPARSE = 2 };

/* The byte at i of message `seed`: runs that compress, noise that does not, or zeros with some of
 * it between them. */
static inline unsigned char byte_at(int kind, unsigned seed, size_t i) {
  uint64_t x = kind == TEXT ? (uint64_t)seed * 31 + i / 97 : ((uint64_t)seed << 40) + i + 1;
  if (kind == TEXT) return (unsigned char)x;
  if (kind == SPARSE && i / 1024 % 8 != 0) return 0;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (unsigned char)(x >> 56);
}

static inline void fill(void *buffer, size_t n, int kind, unsigned seed) {
  unsigned char *p = buffer;
  for (size_t i = 0; i < n; ++i) p[i] = byte_at(kind, seed, i);
}

static inline int filled(const void *buffer, size_t n, int kind, unsigned seed) {
  const unsigned char *p = buffer;
  for (size_t i = 0; i < n; ++i)
    if (p[i] != byte_at(kind, seed, i)) return 0;
  return 1;
}

static inline int all_bytes(const void *buffer, size_t n, int value) {
  const unsigned char *p = buffer;
  for (size_t i = 0; i < n; ++i)
    if (p[i] != (unsigned char)value) return 0;
  return 1;
}

static inline int count_of(const MPI_Status *status, MPI_Datatype type) {
  int n;
  MPI_Get_count(status, type, &n);
  return n;
}

#endif
