// SPDX-License-Identifier: Apache-2.0
// A communicator, divided by nodes: what compressed collectives talk through.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "job/comms.hpp"
#include "messages/buffer.hpp"

namespace wirepress {

struct Shadow {
  Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow();
  MPI_Comm all = MPI_COMM_NULL;   // all ranks, in the user's order
  MPI_Comm node = MPI_COMM_NULL;  // my node's ranks
  // The ranks of all nodes that have my number in their node, by node: the leaders' lane is that of
  // number 0. Null where I do not lead and nodes differ in size.
  MPI_Comm lane = MPI_COMM_NULL;
  bool even = false;             // all nodes have as many ranks
  int n_nodes = 0, my_node = 0;  // nodes are numbered by their first rank
  int node_rank = 0, node_size = 0;
  bool ordered = false;                    // ranks of a node follow each other, node by node
  std::vector<int> node_of, rank_in_node;  // by rank of the communicator
  std::vector<int> members;                // ranks, node by node
  std::vector<int> first;                  // index in members where each node begins; n_nodes + 1
  unsigned n_calls = 0;                    // of those made of messages between pairs
  bool provided = false;                   // has spares of its own
  Buffer room;                             // for whole messages of up to kRoom bytes
  Buffer gathered;                         // what ordered_reduce() collects, if it is ever needed
  // Between a contest and the call that it runs.
  bool look_anew = false;       // the call is to try all candidates again
  double sampling_seconds = 0;  // that its calls spent on trying candidates
};
inline constexpr size_t kRoom = size_t{16} << 20;
// The bytes of each rank that ordered_reduce() collects at a time, about.
inline size_t gathered_size(const Shadow& shadow) {
  return std::min(size_t{1} << 20, kRoom / static_cast<size_t>(shadow.node_size));
}
// nullptr: collectives on this communicator are left to MPI (alike on every member).
Shadow* find_shadow(Comm* comm);
// Frees the communicators; collective.
void free_parts(Shadow* shadow);

}  // namespace wirepress
