// SPDX-License-Identifier: Apache-2.0
// A communicator's neighbours, as its topology has them.
#pragma once

#include <mpi.h>

#include <vector>

namespace wirepress {

struct Comm;

// In the order of the blocks of a neighbourhood collective. A neighbour may be MPI_PROC_NULL, this
// rank, or one that stands there several times.
struct Topology {
  std::vector<int> sources, destinations;
  bool known = false;  // the communicator has a topology
  // Which of several messages between the same two ranks a block is, in Neighbor_alltoall, -v and
  // -w: once they are asked for.
  bool matched[3] = {false, false, false};
  std::vector<int> turns_in[3], turns_out;
};

// Local. Kept as long as the communicator.
Topology& topology_of(Comm* comm);

}  // namespace wirepress
