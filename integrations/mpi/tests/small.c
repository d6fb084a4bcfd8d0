/* SPDX-License-Identifier: Apache-2.0
 * Many small messages of a smooth field: small KIND BYTES. KIND: doubles or bytes (the same values
 * as MPI_BYTE), both by Isend; persistent; alltoall (blocks of BYTES); words as MPI_INT, or few of
 * those: calm, or gusts, with three messages of noise among them. Two ranks. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kMost = 1 << 17, kRounds = 240, kFewRounds = 44, kGust = 20, kGustEnd = 23 };

static double mine[2 * kMost / 8], got[2 * kMost / 8];

static double value(int rank, int round, int i) {
  return 300 + (rank + 1) * sin(1e-4 * i + 0.01 * (round % 7));
}

/* Words in an order of chance, which lz4 shrinks about twice. */
static void words(int rank, int round, char *to, int size) {
  static const char *const all[] = {"rank ", "message ", "of the ", "node ", "1024 ", "sent\n"};
  unsigned x = 1u + (unsigned)(rank * 1000 + round);
  for (int at = 0; at < size;) {
    x = x * 1664525u + 1013904223u;
    for (const char *word = all[(x >> 16) % 6]; *word && at < size; ++word) to[at++] = *word;
  }
}

static void send_words(int rank, int size, int n_rounds, int gusts) {
  static char out[8 * kMost], in[8 * kMost], expected[8 * kMost];
  for (int round = 0; round < n_rounds; ++round) {
    MPI_Request both[2];
    if (gusts && round >= kGust && round < kGustEnd) {
      fill(out, (size_t)size, NOISE, (unsigned)(2 * round + rank));
      fill(expected, (size_t)size, NOISE, (unsigned)(2 * round + 1 - rank));
    } else {
      words(rank, round % 7, out, size);
      words(1 - rank, round % 7, expected, size);
    }
    MPI_Irecv(in, size / 4, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Isend(out, size / 4, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    CHECK(memcmp(in, expected, (size_t)size) == 0);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) return 2;
  const char *kind = argv[1];
  const int n = atoi(argv[2]) / 8, peer = 1 - rank;
  const int bytes = strcmp(kind, "bytes") == 0, blocks = strcmp(kind, "alltoall") == 0;
  const int persistent = strcmp(kind, "persistent") == 0;
  const MPI_Datatype type = bytes ? MPI_BYTE : MPI_DOUBLE;
  const int count = bytes ? 8 * n : n;
  MPI_Request requests[2];
  if (persistent) MPI_Send_init(mine, count, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
  const int gusts = strcmp(kind, "gusts") == 0, few = gusts || strcmp(kind, "calm") == 0;
  const int is_text = few || strcmp(kind, "words") == 0;
  if (is_text) send_words(rank, 8 * n, few ? kFewRounds : kRounds, gusts);
  for (int round = 0; !is_text && round < kRounds; ++round) {
    for (int i = 0; i < 2 * n; ++i) mine[i] = value(rank, round, i);
    if (blocks) {
      MPI_Alltoall(mine, n, MPI_DOUBLE, got, n, MPI_DOUBLE, MPI_COMM_WORLD);
      for (int i = 0; i < n; ++i) CHECK(got[peer * n + i] == value(peer, round, rank * n + i));
      continue;
    }
    MPI_Irecv(got, count, type, peer, 0, MPI_COMM_WORLD, &requests[1]);
    if (persistent) {
      MPI_Start(&requests[0]);
    } else {
      MPI_Isend(mine, count, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; ++i) CHECK(got[i] == value(peer, round, i));
  }
  if (persistent) MPI_Request_free(&requests[0]);
  MPI_Finalize();
  printf("ok small\n");
  return 0;
}
