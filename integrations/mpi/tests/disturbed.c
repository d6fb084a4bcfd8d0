/* SPDX-License-Identifier: Apache-2.0
 * disturbed CALL N: N Bcasts of text; in number CALL a signal holds rank 1 up inside of MPI. */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

enum { kBytes = 16 << 20 };

static void nap(int number) {
  (void)number;
  const struct timespec time = {1, 0};
  nanosleep(&time, NULL);
}

int main(int argc, char **argv) {
  static unsigned char data[kBytes];
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  const int disturbed = atoi(argv[1]), n = atoi(argv[2]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  signal(SIGALRM, nap);
  for (int i = 0; i < n; ++i) {
    if (rank == 0) fill(data, kBytes, TEXT, (unsigned)i);
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == disturbed && rank == 1) {
      const struct itimerval soon = {{0, 0}, {0, 1500}}; /* the call takes longer */
      setitimer(ITIMER_REAL, &soon, NULL);
    }
    MPI_Bcast(data, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(filled(data, kBytes, TEXT, (unsigned)i));
  }
  if (rank == 0) puts("ok");
  MPI_Finalize();
  return 0;
}
