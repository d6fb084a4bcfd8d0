// SPDX-License-Identifier: Apache-2.0
// Random bytes, as doubles, from rank 0 to rank 1, by functions whose names C++ mangles: sites
// MESSAGES
#include <mpi.h>

#include <cstdlib>
#include <vector>

namespace wave {
template <typename Value>
[[gnu::noinline]] void exchange(std::vector<Value>& values, int rank) {
  const int n = static_cast<int>(values.size());
  if (rank == 0) MPI_Send(values.data(), n, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Recv(values.data(), n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  asm volatile("");  // the calls return here
}
}  // namespace wave

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<double> values(20'000);
  auto* bytes = reinterpret_cast<unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(double); ++i) {
    bytes[i] = static_cast<unsigned char>(lrand48() >> 8);
  }
  for (int i = 0; i < std::atoi(argv[1]); ++i) wave::exchange(values, rank);
  MPI_Finalize();
}
