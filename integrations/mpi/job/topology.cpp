// SPDX-License-Identifier: Apache-2.0
#include "job/topology.hpp"

#include "job/comms.hpp"

namespace wirepress {
namespace {

bool learn_cart(MPI_Comm handle, Topology* topology) {
  int n = 0;
  if (PMPI_Cartdim_get(handle, &n) != MPI_SUCCESS) return false;
  std::vector<int>& neighbors = topology->sources;
  for (int i = 0; i < n; ++i) {
    int before, after;
    if (PMPI_Cart_shift(handle, i, 1, &before, &after) != MPI_SUCCESS) return false;
    neighbors.insert(neighbors.end(), {before, after});
  }
  topology->destinations = neighbors;
  return true;
}

bool learn_graph(const Comm& comm, Topology* topology) {
  int n = 0;
  if (PMPI_Graph_neighbors_count(comm.handle, comm.rank, &n) != MPI_SUCCESS) return false;
  topology->sources.resize(static_cast<size_t>(n));
  if (PMPI_Graph_neighbors(comm.handle, comm.rank, n, topology->sources.data()) != MPI_SUCCESS) {
    return false;
  }
  topology->destinations = topology->sources;
  return true;
}

bool learn_dist_graph(const Comm& comm, Topology* topology) {
  int n_in = 0, n_out = 0, weighted;
  if (PMPI_Dist_graph_neighbors_count(comm.handle, &n_in, &n_out, &weighted) != MPI_SUCCESS) {
    return false;
  }
  std::vector<int> weights(static_cast<size_t>(n_in + n_out) + 1);
  topology->sources.resize(static_cast<size_t>(n_in));
  topology->destinations.resize(static_cast<size_t>(n_out));
  return PMPI_Dist_graph_neighbors(comm.handle, n_in, topology->sources.data(), weights.data(),
                                   n_out, topology->destinations.data(),
                                   weights.data() + n_in) == MPI_SUCCESS;
}

void learn(const Comm& comm, Topology* topology) {
  int kind = MPI_UNDEFINED;
  if (comm.inter || PMPI_Topo_test(comm.handle, &kind) != MPI_SUCCESS) return;
  topology->known = kind == MPI_CART         ? learn_cart(comm.handle, topology)
                    : kind == MPI_GRAPH      ? learn_graph(comm, topology)
                    : kind == MPI_DIST_GRAPH ? learn_dist_graph(comm, topology)
                                             : false;
  if (topology->known) return;
  topology->sources.clear();
  topology->destinations.clear();
}

}  // namespace

Topology& topology_of(Comm* comm) {
  if (!comm->topology) {
    comm->topology = std::make_unique<Topology>();
    learn(*comm, comm->topology.get());
  }
  return *comm->topology;
}

}  // namespace wirepress
