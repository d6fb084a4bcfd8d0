/* SPDX-License-Identifier: Apache-2.0
 * A program whose locale writes 0,5 for 0.5: bounds, rates and the report are not its business. */
#include <locale.h>
#include <math.h>

#include "check.h"

#define N 100000

int main(int argc, char **argv) {
  static float data[N], got[N];
  int rank;
  if (!setlocale(LC_ALL, "de_DE.UTF-8") || localeconv()->decimal_point[0] != ',') return 77;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < N; ++i) data[i] = sinf((float)i / 1000);
  for (int round = 0; round < 20; ++round) {
    MPI_Sendrecv(data, N, MPI_FLOAT, 1 - rank, 0, got, N, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < N; ++i) CHECK(fabsf(got[i] - data[i]) <= 0.001f);
  }
  if (rank == 0) printf("ok locale\n");
  MPI_Finalize();
  return 0;
}
