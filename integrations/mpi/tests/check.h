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

enum { RUN = 97, PART = 1024 };

/* Eight bytes of noise. */
static inline uint64_t noise_at(unsigned seed, size_t word) {
  uint64_t x = ((uint64_t)seed << 40) + word + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline int is_noise(int kind, size_t i) {
  return kind == NOISE || (kind == SPARSE && i / PART % 8 == 0);
}

/* The byte at i of message `seed`: runs that compress, noise that does not, or zeros with some of
 * it between them. */
static inline unsigned char byte_at(int kind, unsigned seed, size_t i) {
  if (kind == TEXT) return (unsigned char)((uint64_t)seed * 31 + i / RUN);
  if (!is_noise(kind, i)) return 0;
  const uint64_t word = noise_at(seed, i / 8);
  return ((const unsigned char *)&word)[i % 8];
}

/* The bytes from `first` on, many at a time: one by one they took longer than the messages. */
static inline void fill_from(size_t first, void *buffer, size_t n, int kind, unsigned seed) {
  unsigned char *p = buffer;
  const size_t end = first + n;
  for (size_t i = first, step; i < end; i += step, p += step) {
    const int noise = is_noise(kind, i);
    step = noise ? 8 - i % 8 : kind == TEXT ? RUN - i % RUN : PART - i % PART;
    if (step > end - i) step = end - i;
    const uint64_t word = noise ? noise_at(seed, i / 8) : 0;
    if (!noise)
      memset(p, byte_at(kind, seed, i), step);
    else if (step == 8)
      memcpy(p, &word, 8);
    else
      memcpy(p, (const unsigned char *)&word + i % 8, step);
  }
}

static inline int filled_from(size_t first, const void *buffer, size_t n, int kind, unsigned seed) {
  unsigned char expected[4096];
  for (size_t at = 0; at < n; at += sizeof expected) {
    const size_t size = n - at < sizeof expected ? n - at : sizeof expected;
    fill_from(first + at, expected, size, kind, seed);
    if (memcmp((const unsigned char *)buffer + at, expected, size) != 0) return 0;
  }
  return 1;
}

static inline void fill(void *buffer, size_t n, int kind, unsigned seed) {
  fill_from(0, buffer, n, kind, seed);
}

static inline int filled(const void *buffer, size_t n, int kind, unsigned seed) {
  return filled_from(0, buffer, n, kind, seed);
}

static inline int all_bytes(const void *buffer, size_t n, int value) {
  const unsigned char *p = buffer;
  return n == 0 || (p[0] == (unsigned char)value && memcmp(p, p + 1, n - 1) == 0);
}

static inline int count_of(const MPI_Status *status, MPI_Datatype type) {
  int n;
  MPI_Get_count(status, type, &n);
  return n;
}

#endif
