// SPDX-License-Identifier: Apache-2.0
// Collectives whose buffers lie in memory of a GPU, and are run on copies: those that MPI runs, and
// those of ours whose ranks share a node, that have gaps, or whose blocks are too small for frames.
// Each member decides for itself, as what the others see does not depend on where its buffers lie.
#pragma once

#include "calls/wrap.hpp"
#include "collectives/run.hpp"
#include "messages/devices.hpp"
#include "messages/thread.hpp"

namespace wirepress {

// body(from, to) runs the call. `sent` and `got` say what it reaches of the two, if it does.
template <typename Sent, typename Got, typename Body>
int on_host(Call call, MPI_Comm handle, const void* from, Sent sent, void* to, Got got, Body body) {
  const bool from_there = on_device(from), to_there = on_device(to);
  if (!from_there && !to_there) return body(from, to);
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter) return body(from, to);
  // Among ranks of a node MPI runs it (messages/quick.hpp).
  if (comm->all_inside && mpi_reaches(from) && mpi_reaches(to)) return body(from, to);
  // Types of a buffer that a call does not look at may be anything.
  const OnHost in(from, from_there ? sent(comm->rank, comm->size) : Reach()),
      out(to, to_there ? got(comm->rank, comm->size) : Reach());
  if (in.error() || out.error()) return raise(comm, in.error() ? in.error() : out.error());
  stats(call).cores_size += in.copied_size() + out.copied_size();
  const int error = body(in.at(), out.at());
  if (error) return error;
  const int back = out.give_back();
  return back ? raise(comm, back) : MPI_SUCCESS;
}

// Whether chunks of this rank's own buffers are coded and expanded where they lie: nobody on its
// node is given them.
inline bool is_alone(const Shadow& shadow) { return shadow.node_size == 1 && shadow.n_nodes > 1; }

inline MPI_Count times(MPI_Count a, MPI_Count b) {
  MPI_Count all;
  return __builtin_mul_overflow(a, b, &all) ? 0 : all;
}

template <typename N, typename A>
Reach reach_of_blocks(const N* counts, const A* at, MPI_Datatype type, int size) {
  Reach all;
  MPI_Aint lower, extent;
  if (!counts || !at || type == MPI_DATATYPE_NULL ||
      PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS)
    return all;
  for (int i = 0; i < size; ++i) {
    all.add(reach_of(counts[i], type, static_cast<MPI_Aint>(at[i]) * extent));
  }
  return all;
}

template <typename N, typename A>
Reach reach_of_blocks(const N* counts, const A* at, const MPI_Datatype* types, int size) {
  Reach all;
  for (int i = 0; counts && at && types && i < size; ++i) {
    all.add(reach_of(counts[i], types[i], static_cast<MPI_Aint>(at[i])));
  }
  return all;
}

template <typename N>
MPI_Count sum_of(const N* counts, int size) {
  MPI_Count sum = 0;
  for (int i = 0; counts && i < size; ++i) sum += counts[i];
  return sum;
}

}  // namespace wirepress

// A copy has the name of what it stands for.
#pragma GCC diagnostic ignored "-Wshadow"
// WPR_ON_HOST_Name(call): the collective, on copies where it needs them. Names are as in Call, and
// arguments as in arguments.hpp.
#define WPR_REACH(...) \
  [&]([[maybe_unused]] int rank, [[maybe_unused]] int size) -> Reach { return __VA_ARGS__; }
#define WPR_ON_HOST(call, sent, got, ...)                        \
  on_host(call, handle, from, WPR_REACH sent, to, WPR_REACH got, \
          [&](const void* from, void* to) { return __VA_ARGS__; })
#define WPR_ON_HOST_Bcast(...)                                                            \
  on_host(kBcast, handle, nullptr, WPR_REACH(Reach()), buf, WPR_REACH(reach_of(n, type)), \
          [&](const void*, void* buf) { return __VA_ARGS__; })
#define WPR_ON_HOST_Allgather(...) \
  WPR_ON_HOST(kAllgather, (reach_of(n, type)), (reach_of(times(m, size), to_type)), __VA_ARGS__)
#define WPR_ON_HOST_Alltoall(...)                                                               \
  WPR_ON_HOST(kAlltoall, (reach_of(times(n, size), type)), (reach_of(times(m, size), to_type)), \
              __VA_ARGS__)
#define WPR_ON_HOST_Gather(...)             \
  WPR_ON_HOST(kGather, (reach_of(n, type)), \
              (reach_of(rank == root ? times(m, size) : 0, to_type)), __VA_ARGS__)
#define WPR_ON_HOST_Scatter(...)                                             \
  WPR_ON_HOST(kScatter, (reach_of(rank == root ? times(n, size) : 0, type)), \
              (reach_of(m, to_type)), __VA_ARGS__)
#define WPR_ON_HOST_Allgatherv(...)                                                           \
  WPR_ON_HOST(kAllgatherv, (reach_of(n, type)), (reach_of_blocks(counts, at, to_type, size)), \
              __VA_ARGS__)
#define WPR_ON_HOST_Gatherv(...)             \
  WPR_ON_HOST(kGatherv, (reach_of(n, type)), \
              (rank == root ? reach_of_blocks(counts, at, to_type, size) : Reach()), __VA_ARGS__)
#define WPR_ON_HOST_Scatterv(...)                                                            \
  WPR_ON_HOST(kScatterv, (rank == root ? reach_of_blocks(n, from_at, type, size) : Reach()), \
              (reach_of(m, to_type)), __VA_ARGS__)
#define WPR_ON_HOST_Alltoallv(...)                                   \
  WPR_ON_HOST(kAlltoallv, (reach_of_blocks(n, from_at, type, size)), \
              (reach_of_blocks(counts, at, to_type, size)), __VA_ARGS__)
#define WPR_ON_HOST_Alltoallw(...)                                    \
  WPR_ON_HOST(kAlltoallw, (reach_of_blocks(n, from_at, types, size)), \
              (reach_of_blocks(counts, at, to_types, size)), __VA_ARGS__)
#define WPR_ON_HOST_Allreduce(...) \
  WPR_ON_HOST(kAllreduce, (reach_of(n, type)), (reach_of(n, type)), __VA_ARGS__)
#define WPR_ON_HOST_Reduce(...) \
  WPR_ON_HOST(kReduce, (reach_of(n, type)), (reach_of(rank == root ? n : 0, type)), __VA_ARGS__)
// In place, what is reduced stands where the result goes.
#define WPR_ON_HOST_ReduceScatter(...)                            \
  WPR_ON_HOST(kReduceScatter, (reach_of(sum_of(n, size), type)),  \
              (reach_of(from == MPI_IN_PLACE ? sum_of(n, size)    \
                        : n                  ? MPI_Count{n[rank]} \
                                             : 0,                                  \
                        type)),                                   \
              __VA_ARGS__)
#define WPR_ON_HOST_ReduceScatterBlock(...)                          \
  WPR_ON_HOST(kReduceScatterBlock, (reach_of(times(n, size), type)), \
              (reach_of(from == MPI_IN_PLACE ? times(n, size) : MPI_Count{n}, type)), __VA_ARGS__)
