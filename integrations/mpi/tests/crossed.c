/* SPDX-License-Identifier: Apache-2.0
 * One of several jobs that start at the same time. Ranks send messages whose content only their own
 * job knows, and check what comes. crossed NUMBER [MESSAGES]; prints "ok NUMBER RANK". */
#include "check.h"

enum { kSize = 40000 };

static uint32_t value_of(uint32_t job, int from, int message, int i) {
  return job * 7919u + (uint32_t)from * 104729u + (uint32_t)message * 31u + (uint32_t)(i / 64);
}

int main(int argc, char **argv) {
  const uint32_t job = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
  const int n_messages = argc > 2 ? atoi(argv[2]) : 4;
  setenv("HOME", "/", 0); /* Open MPI 5 does not start without one; srun --export keeps it back */
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  uint32_t *mine = malloc(kSize * sizeof *mine), *theirs = malloc(kSize * sizeof *theirs);
  for (int message = 0; message < n_messages; ++message) {
    for (int i = 0; i < kSize; ++i) mine[i] = value_of(job, rank, message, i);
    for (int i = 0; i < kSize; ++i) theirs[i] = 0;
    MPI_Sendrecv(mine, kSize, MPI_UINT32_T, to, 1, theirs, kSize, MPI_UINT32_T, from, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kSize; ++i) wrong += theirs[i] != value_of(job, from, message, i);
  }
  free(mine);
  free(theirs);
  printf("%s %u %d\n", wrong ? "WRONG" : "ok", job, rank);
  MPI_Finalize();
  return wrong != 0;
}
