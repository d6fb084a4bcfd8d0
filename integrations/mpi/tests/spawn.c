/* SPDX-License-Identifier: Apache-2.0
 * Two ranks start two more processes of this program, talk to them by both kinds of communicator,
 * and to each other by a compressed message meanwhile. */
#include "check.h"

enum { kSize = 200000 };

/* By a communicator that has the parents' group and the children's. */
static void around(MPI_Comm comm, unsigned char *data, unsigned char *got, int tag) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  fill(data, kSize, TEXT, (unsigned)(rank + 10 * tag));
  MPI_Sendrecv(data, kSize, MPI_BYTE, to, tag, got, kSize, MPI_BYTE, from, tag, comm,
               MPI_STATUS_IGNORE);
  CHECK(filled(got, kSize, TEXT, (unsigned)(from + 10 * tag)));
}

int main(int argc, char **argv) {
  MPI_Comm parent, others, all;
  MPI_Init(&argc, &argv);
  unsigned char *data = malloc(kSize), *got = malloc(kSize);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                   MPI_ERRCODES_IGNORE);
  } else {
    others = parent;
  }
  fill(data, kSize, TEXT, (unsigned)rank);
  MPI_Sendrecv(data, kSize, MPI_BYTE, rank, 5, got, kSize, MPI_BYTE, rank, 5, others,
               MPI_STATUS_IGNORE);
  CHECK(filled(got, kSize, TEXT, (unsigned)rank));
  around(MPI_COMM_WORLD, data, got, 1);
  MPI_Intercomm_merge(others, parent != MPI_COMM_NULL, &all);
  around(all, data, got, 2);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
  printf("ok %s\n", parent == MPI_COMM_NULL ? "parent" : "child");
  free(data);
  free(got);
  MPI_Finalize();
  return 0;
}
