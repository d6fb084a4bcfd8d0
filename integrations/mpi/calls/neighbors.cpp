// SPDX-License-Identifier: Apache-2.0
// Collectives of neighbours: messages between pairs of ranks, as Alltoallv is.
//
// Two ranks may be neighbours several times: both of a torus of two, an edge that stands twice.
// Which of their messages belongs in which block MPI libraries see differently. So the library
// below is asked, once for a communicator and a kind of call (MPICH's Neighbor_alltoall and
// Neighbor_alltoallv differ): it carries the number of each message of a pair by its own call.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "calls/arguments.hpp"
#include "collectives/pairwise.hpp"
#include "collectives/run.hpp"
#include "job/topology.hpp"

namespace wirepress {
namespace {

// Collective: which message of a pair each block is in calls like this one.
const std::vector<int>* match(Call call, Comm* comm, Topology* topology) {
  const int way = call == kNeighborAlltoallv ? 1 : call == kNeighborAlltoallw ? 2 : 0;
  std::vector<int>& in = topology->turns_in[way];
  if (topology->matched[way]) return &in;
  const std::vector<int>&from = topology->sources, &to = topology->destinations;
  const size_t n_in = from.size(), n_out = to.size(), most = std::max(n_in, n_out) + 1;
  std::vector<int>& out = topology->turns_out;
  // One more each, for MPICH wants an address even where there is no neighbour.
  out.assign(n_out + 1, 0);
  in.assign(n_in + 1, 0);
  for (size_t i = 0; i < n_out; ++i) {
    out[i] = static_cast<int>(
        std::count(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(i), to[i]));
  }
  std::vector<int> ones(most, 1), at(most);
  std::vector<MPI_Aint> bytes_at(most);
  const std::vector<MPI_Datatype> types(most, MPI_INT);
  for (size_t i = 0; i < most; ++i) {
    at[i] = static_cast<int>(i);
    bytes_at[i] = static_cast<MPI_Aint>(i * sizeof(int));
  }
  const auto leaves = [&](int rank) { return comm->takes_frames(rank); };
  stats(kExchange).wire_size +=
      sizeof(int) * static_cast<size_t>(std::count_if(to.begin(), to.end(), leaves));
  const int error =
      way == 0 ? PMPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm->handle)
      : way == 1 ? PMPI_Neighbor_alltoallv(out.data(), ones.data(), at.data(), MPI_INT, in.data(),
                                           ones.data(), at.data(), MPI_INT, comm->handle)
                 : PMPI_Neighbor_alltoallw(out.data(), ones.data(), bytes_at.data(), types.data(),
                                           in.data(), ones.data(), bytes_at.data(), types.data(),
                                           comm->handle);
  if (error != MPI_SUCCESS) return nullptr;
  topology->matched[way] = true;
  return &in;
}

// The block that all neighbours get.
struct Same {
  Block block;
  Block operator()(size_t) const { return block; }
};

// Whether the arrays of n blocks are there; without neighbours they need not be.
bool given(const Same&) { return true; }
bool given(const Equal&) { return true; }
template <typename N, typename D>
bool given(const Varying<N, D>& blocks) {
  return blocks.counts && blocks.at;
}
template <typename N, typename D>
bool given(const Typed<N, D>& blocks) {
  return blocks.counts && blocks.at && blocks.types;
}

template <typename Blocks>
bool sound(const Blocks& blocks, size_t n) {
  if (n > 0 && !given(blocks)) return false;
  MPI_Count size;
  for (size_t i = 0; i < n; ++i) {
    if (!block_size(blocks(i), &size)) return false;
  }
  return true;
}

// from(i) and to(i): the blocks of destination i and source i.
template <typename Plain, typename From, typename To>
int exchange(Call call, Comm* comm, Plain plain, From from, To to) {
  const Way way = way_of_pairs(comm);
  if (!way.shadow) return plain(way.why);
  Topology& topology = topology_of(comm);
  const std::vector<int>& sources = topology.sources;
  const std::vector<int>& destinations = topology.destinations;
  if (!topology.known || !sound(from, destinations.size()) || !sound(to, sources.size())) {
    return plain();
  }
  const std::vector<int>* turns_in = match(call, comm, &topology);
  if (!turns_in) return plain();
  PairwiseExchange messages(call, comm, way.shadow);
  // Others may have as many neighbours, and other ones first: whatever is sent must find its
  // receive.
  messages.receive_all_at_once();
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i] >= 0) messages.send(destinations[i], from(i), false, topology.turns_out[i]);
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] >= 0) messages.receive(sources[i], to(i), (*turns_in)[i]);
  }
  return messages.run();
}

int count_of(const std::vector<int>& neighbors) { return static_cast<int>(neighbors.size()); }
Topology* known_topology(MPI_Comm handle) {
  Comm* comm = collective_comm(handle);
  return comm ? &topology_of(comm) : nullptr;
}
int n_sources(MPI_Comm handle) {
  const Topology* known = known_topology(handle);
  return known ? count_of(known->sources) : 0;
}
int n_destinations(MPI_Comm handle) {
  const Topology* known = known_topology(handle);
  return known ? count_of(known->destinations) : 0;
}

#define WPR_ON_HOST_NeighborAllgather(...)             \
  WPR_ON_HOST(kNeighborAllgather, (reach_of(n, type)), \
              (reach_of(times(m, n_sources(handle)), to_type)), __VA_ARGS__)
#define WPR_ON_HOST_NeighborAllgatherv(...)             \
  WPR_ON_HOST(kNeighborAllgatherv, (reach_of(n, type)), \
              (reach_of_blocks(counts, at, to_type, n_sources(handle))), __VA_ARGS__)
#define WPR_ON_HOST_NeighborAlltoall(...)                                            \
  WPR_ON_HOST(kNeighborAlltoall, (reach_of(times(n, n_destinations(handle)), type)), \
              (reach_of(times(m, n_sources(handle)), to_type)), __VA_ARGS__)
#define WPR_ON_HOST_NeighborAlltoallv(...)                                                     \
  WPR_ON_HOST(kNeighborAlltoallv, (reach_of_blocks(n, from_at, type, n_destinations(handle))), \
              (reach_of_blocks(counts, at, to_type, n_sources(handle))), __VA_ARGS__)
#define WPR_ON_HOST_NeighborAlltoallw(...)                                                      \
  WPR_ON_HOST(kNeighborAlltoallw, (reach_of_blocks(n, from_at, types, n_destinations(handle))), \
              (reach_of_blocks(counts, at, to_types, n_sources(handle))), __VA_ARGS__)

template <auto form, typename N>
int neighbor_allgather(ALLGATHER(N)) {
  const auto plain = LEFT_TO_MPI(NeighborAllgather, ALLGATHER);
  Comm* comm = collective_comm(handle);
  if (!comm) return plain();
  return exchange(kNeighborAllgather, comm, plain, Same{{bytes_of(from), n, type}},
                  Equal(to, m, to_type));
}

template <auto form, typename N>
int neighbor_allgatherv(ALLGATHERV(N)) {
  const auto plain = LEFT_TO_MPI(NeighborAllgatherv, ALLGATHERV);
  Comm* comm = collective_comm(handle);
  if (!comm) return plain();
  return exchange(kNeighborAllgatherv, comm, plain, Same{{bytes_of(from), n, type}},
                  Varying(to, counts, at, to_type));
}

template <auto form, typename N>
int neighbor_alltoall(ALLTOALL(N)) {
  const auto plain = LEFT_TO_MPI(NeighborAlltoall, ALLTOALL);
  Comm* comm = collective_comm(handle);
  if (!comm) return plain();
  return exchange(kNeighborAlltoall, comm, plain, Equal(from, n, type), Equal(to, m, to_type));
}

template <auto form, typename N>
int neighbor_alltoallv(ALLTOALLV(N)) {
  const auto plain = LEFT_TO_MPI(NeighborAlltoallv, ALLTOALLV);
  Comm* comm = collective_comm(handle);
  if (!comm) return plain();
  return exchange(kNeighborAlltoallv, comm, plain, Varying(from, n, from_at, type),
                  Varying(to, counts, at, to_type));
}

template <auto form, typename N>
int neighbor_alltoallw(NEIGHBORW(N)) {
  const auto plain = LEFT_TO_MPI(NeighborAlltoallw, NEIGHBORW);
  Comm* comm = collective_comm(handle);
  if (!comm) return plain();
  return exchange(kNeighborAlltoallw, comm, plain, Typed<N, MPI_Aint>{from, n, from_at, types},
                  Typed<N, MPI_Aint>{to, counts, at, to_types});
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                     \
  DEFINE_OWN(suffix, N, NeighborAllgather, Neighbor_allgather, ALLGATHER, neighbor_allgather)     \
  DEFINE_OWN(suffix, N, NeighborAllgatherv, Neighbor_allgatherv, ALLGATHERV, neighbor_allgatherv) \
  DEFINE_OWN(suffix, N, NeighborAlltoall, Neighbor_alltoall, ALLTOALL, neighbor_alltoall)         \
  DEFINE_OWN(suffix, N, NeighborAlltoallv, Neighbor_alltoallv, ALLTOALLV, neighbor_alltoallv)     \
  DEFINE_OWN(suffix, N, NeighborAlltoallw, Neighbor_alltoallw, NEIGHBORW, neighbor_alltoallw)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
