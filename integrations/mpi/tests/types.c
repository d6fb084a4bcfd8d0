/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 sends ten arrays of each of five types to rank 1, which knows every bit of them; each type
 * by a call of its own, so that a report tells them apart. */
#include <complex.h>

#include "check.h"

enum { kCount = 40000, kMessages = 10 };

/* Zeros in long runs, and few digits: every codec shrinks it. */
static double value_at(int message, int i) {
  return i / 500 % 2 ? 0 : (1 + (i % 7) / 8.0) * (1 << message % 5);
}

enum { FLOAT, DOUBLE, ZFLOAT, ZDOUBLE, INT, TYPES };

static void make(int kind, void *data, int message) {
  for (int i = 0; i < kCount; ++i) {
    const double value = value_at(message, i);
    if (kind == FLOAT) ((float *)data)[i] = (float)value;
    if (kind == DOUBLE) ((double *)data)[i] = value;
    if (kind == ZFLOAT) ((float complex *)data)[i] = (float)value + 2 * (float)value * I;
    if (kind == ZDOUBLE) ((double complex *)data)[i] = value - 2 * value * I;
    if (kind == INT) ((int *)data)[i] = (int)(value * 8);
  }
}

static void send(int kind, void *data, MPI_Datatype type, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (kind == FLOAT) MPI_Send(data, kCount, type, 1, tag, MPI_COMM_WORLD);
  if (kind == DOUBLE) MPI_Ssend(data, kCount, type, 1, tag, MPI_COMM_WORLD);
  if (kind == ZFLOAT) MPI_Isend(data, kCount, type, 1, tag, MPI_COMM_WORLD, &request);
  if (kind == ZDOUBLE) MPI_Issend(data, kCount, type, 1, tag, MPI_COMM_WORLD, &request);
  if (kind == INT)
    MPI_Sendrecv(data, kCount, type, 1, tag, NULL, 0, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const MPI_Datatype types[TYPES] = {MPI_FLOAT, MPI_DOUBLE, MPI_C_FLOAT_COMPLEX,
                                     MPI_C_DOUBLE_COMPLEX, MPI_INT};
  static double complex data[kCount], got[kCount];
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int kind = 0; kind < TYPES; ++kind) {
    MPI_Type_size(types[kind], &size);
    for (int message = 0; message < kMessages; ++message) {
      memset(got, 0xAA, sizeof got);
      make(kind, data, message);
      if (rank == 0) send(kind, data, types[kind], message);
      if (rank != 1) continue;
      MPI_Status status;
      MPI_Recv(got, kCount, types[kind], 0, message, MPI_COMM_WORLD, &status);
      CHECK(count_of(&status, types[kind]) == kCount);
      CHECK(memcmp(got, data, (size_t)kCount * (size_t)size) == 0);
    }
  }
  MPI_Finalize();
  return 0;
}
