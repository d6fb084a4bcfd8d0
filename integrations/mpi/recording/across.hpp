// SPDX-License-Identifier: Apache-2.0
// What a collective that MPI runs by itself sends to other nodes, for the report.
//
// The interposer cannot see MPI's messages. The model is what any algorithm must send, with the
// nodes known: data go once to each other node that needs them. MPI's own algorithm may send more.
// What the sockets and NICs saw stands beside it in the report (network.cpp).
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "job/comms.hpp"
#include "job/job.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// One call on this rank. The functions have MPI's names and arguments; a call that the model does
// not know, as a reduction on an intercommunicator, has no bytes. NC: counts, A: displacements.
class Across {
 public:
  Across(Call call, Comm* comm) : call_(call), comm_(comm) {}
  uint64_t bytes() const { return bytes_; }

  void bcast(const void*, MPI_Count n, MPI_Datatype type, int root, MPI_Comm) {
    const bool here = comm_->inter ? root == MPI_ROOT : root == comm_->rank;
    if (here) bytes_ = to_other_nodes(size_of(n, type));
  }
  void allgather(const void* from, MPI_Count n, MPI_Datatype type, const void*, MPI_Count m,
                 MPI_Datatype to_type, MPI_Comm) {
    const uint64_t own = from == MPI_IN_PLACE ? size_of(m, to_type) : size_of(n, type);
    bytes_ =
        is_of_neighbors(call_) ? to_neighbors([&](size_t) { return own; }) : to_other_nodes(own);
  }
  template <typename NC, typename A>
  void allgatherv(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                  const NC* counts, const A*, MPI_Datatype to_type, MPI_Comm comm) {
    const MPI_Count own = from == MPI_IN_PLACE && counts && !comm_->inter ? counts[comm_->rank] : 0;
    allgather(from, n, type, to, own, to_type, comm);
  }
  void alltoall(const void* from, MPI_Count n, MPI_Datatype type, const void*, MPI_Count m,
                MPI_Datatype to_type, MPI_Comm) {
    const uint64_t each = from == MPI_IN_PLACE ? size_of(m, to_type) : size_of(n, type);
    bytes_ = to_each([&](size_t) { return each; });
  }
  template <typename NC, typename A>
  void alltoallv(const void* from, const NC* counts, const A*, MPI_Datatype type, const void*,
                 const NC* to_counts, const A*, MPI_Datatype to_type, MPI_Comm) {
    if (from == MPI_IN_PLACE) counts = to_counts, type = to_type;
    if (counts) bytes_ = to_each([&](size_t i) { return size_of(counts[i], type); });
  }
  template <typename NC, typename A>
  void alltoallw(const void* from, const NC* counts, const A*, const MPI_Datatype* types,
                 const void*, const NC* to_counts, const A*, const MPI_Datatype* to_types,
                 MPI_Comm) {
    if (from == MPI_IN_PLACE) counts = to_counts, types = to_types;
    if (counts && types) bytes_ = to_each([&](size_t i) { return size_of(counts[i], types[i]); });
  }
  void gather(const void*, MPI_Count n, MPI_Datatype type, const void*, MPI_Count, MPI_Datatype,
              int root, MPI_Comm) {
    if (is_elsewhere(root)) bytes_ = size_of(n, type);
  }
  template <typename NC, typename A>
  void gatherv(const void*, MPI_Count n, MPI_Datatype type, const void*, const NC*, const A*,
               MPI_Datatype, int root, MPI_Comm) {
    if (is_elsewhere(root)) bytes_ = size_of(n, type);
  }
  void scatter(const void*, MPI_Count n, MPI_Datatype type, const void*, MPI_Count, MPI_Datatype,
               int root, MPI_Comm) {
    if (!scatters(root)) return;
    bytes_ = to_peers([&](size_t) { return size_of(n, type); });
  }
  template <typename NC, typename A>
  void scatterv(const void*, const NC* counts, const A*, MPI_Datatype type, const void*, MPI_Count,
                MPI_Datatype, int root, MPI_Comm) {
    if (!scatters(root) || !counts) return;
    bytes_ = to_peers([&](size_t i) { return size_of(counts[i], type); });
  }
  // Scans and Reduce_scatter_block have the same arguments.
  void allreduce(const void*, const void*, MPI_Count n, MPI_Datatype type, MPI_Op, MPI_Comm);
  void reduce(const void*, const void*, MPI_Count n, MPI_Datatype type, MPI_Op, int root,
              MPI_Comm) {
    if (comm_->first_of_node && is_elsewhere(root)) bytes_ = size_of(n, type);
  }
  template <typename NC>
  void reduce_scatter(const void*, const void*, const NC* counts, MPI_Datatype type, MPI_Op,
                      MPI_Comm) {
    if (comm_->inter || !counts) return;
    bytes_ = to_peers([&](size_t i) { return size_of(counts[i], type); }) / members();
  }

 private:
  static uint64_t size_of(MPI_Count count, MPI_Datatype type);
  bool is_elsewhere(int root) const {
    return root >= 0 && root < comm_->size && differs(static_cast<size_t>(root));
  }
  bool differs(size_t peer) const {
    return comm_->node[peer] >= 0 && comm_->node[peer] != own_node();
  }
  bool scatters(int root) const { return comm_->inter ? root == MPI_ROOT : root == comm_->rank; }
  uint64_t members() const { return static_cast<uint64_t>(std::max(comm_->node_members, 1)); }
  uint64_t to_other_nodes(uint64_t size) const {
    return size * static_cast<uint64_t>(comm_->other_nodes);
  }
  template <typename SizeOf>
  uint64_t to_peers(SizeOf size_to) const {
    uint64_t total = 0;
    for (size_t i = 0; i < static_cast<size_t>(comm_->size); ++i) {
      if (differs(i)) total += size_to(i);
    }
    return total;
  }
  template <typename SizeOf>
  uint64_t to_neighbors(SizeOf size_to) const {
    uint64_t total = 0;
    const std::vector<int>& neighbors = destinations();
    for (size_t i = 0; i < neighbors.size(); ++i) {
      if (is_elsewhere(neighbors[i])) total += size_to(i);
    }
    return total;
  }
  template <typename SizeOf>
  uint64_t to_each(SizeOf size_to) const {
    return is_of_neighbors(call_) ? to_neighbors(size_to) : to_peers(size_to);
  }
  const std::vector<int>& destinations() const;  // neighbours that this rank sends to, in order

  Call call_;
  Comm* comm_;
  uint64_t bytes_ = 0;
};

// The communicator of a call that is to be counted, or nullptr.
Comm* counted_comm(MPI_Comm handle);
// Counts a call that MPI is to run; `bytes` of it go to other nodes.
void count_left(Call call, const Comm* comm, Bypass why, uint64_t bytes);
// `describe(across)` says which call it is.
template <typename Describe>
void count_left(Call call, MPI_Comm handle, Bypass why, Describe describe) {
  Comm* comm = counted_comm(handle);
  if (!comm) return;
  Across across(call, comm);
  if (comm->other_nodes > 0) describe(across);
  count_left(call, comm, why, across.bytes());
}
// What members of a communicator told each other besides the program's messages: so many bytes of
// each, reduced to one answer for all.
void count_exchange(const Shadow& shadow, size_t size);

// A persistent collective: each start counts as a call.
void count_starts(MPI_Request request, Call call, MPI_Comm handle, uint64_t bytes);
void count_start(MPI_Request request);
void forget_starts(MPI_Request request);  // it is freed

}  // namespace wirepress
