// SPDX-License-Identifier: Apache-2.0
// What each kind of collective is called with: its parameters, where counts are N, its arguments,
// and its name in Across and Tracing.
#pragma once

#include "calls/on_host.hpp"
#include "calls/wrap.hpp"
#include "choosing/sites.hpp"
#include "messages/quick.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

#define BCAST(N) void *buf, N n, MPI_Datatype type, int root, MPI_Comm handle
#define BCAST_ARGS buf, n, type, root, handle
#define BCAST_FORM bcast
#define BCAST_BUFFERS buf
#define ALL(N) const void *from, N n, MPI_Datatype type, void *to, N m, MPI_Datatype to_type
#define ALL_ARGS from, n, type, to, m, to_type
#define ALLGATHER(N) ALL(N), MPI_Comm handle
#define ALLGATHER_ARGS ALL_ARGS, handle
#define ALLGATHER_FORM allgather
#define ALLGATHER_BUFFERS from, to
#define ALLTOALL(N) ALLGATHER(N)
#define ALLTOALL_ARGS ALLGATHER_ARGS
#define ALLTOALL_FORM alltoall
#define ALLTOALL_BUFFERS from, to
#define GATHER(N) ALL(N), int root, MPI_Comm handle
#define GATHER_ARGS ALL_ARGS, root, handle
#define GATHER_FORM gather
#define GATHER_BUFFERS from, to
#define SCATTER(N) GATHER(N)
#define SCATTER_ARGS GATHER_ARGS
#define SCATTER_FORM scatter
#define SCATTER_BUFFERS from, to
#define RECEIVED(N) void *to, const N counts[], const Displacement<N> at[], MPI_Datatype to_type
#define ALLGATHERV(N) const void *from, N n, MPI_Datatype type, RECEIVED(N), MPI_Comm handle
#define ALLGATHERV_ARGS from, n, type, to, counts, at, to_type, handle
#define ALLGATHERV_FORM allgatherv
#define ALLGATHERV_BUFFERS from, to
#define GATHERV(N) const void *from, N n, MPI_Datatype type, RECEIVED(N), int root, MPI_Comm handle
#define GATHERV_ARGS from, n, type, to, counts, at, to_type, root, handle
#define GATHERV_FORM gatherv
#define GATHERV_BUFFERS from, to
#define SENT(N) const void *from, const N n[], const Displacement<N> from_at[], MPI_Datatype type
#define SCATTERV(N) SENT(N), void *to, N m, MPI_Datatype to_type, int root, MPI_Comm handle
#define SCATTERV_ARGS from, n, from_at, type, to, m, to_type, root, handle
#define SCATTERV_FORM scatterv
#define SCATTERV_BUFFERS from, to
#define ALLTOALLV(N) SENT(N), RECEIVED(N), MPI_Comm handle
#define ALLTOALLV_ARGS from, n, from_at, type, to, counts, at, to_type, handle
#define ALLTOALLV_FORM alltoallv
#define ALLTOALLV_BUFFERS from, to
#define BYTES_AT(N, A)                                                                    \
  const void *from, const N n[], const A from_at[], const MPI_Datatype types[], void *to, \
      const N counts[], const A at[], const MPI_Datatype to_types[], MPI_Comm handle
#define ALLTOALLW(N) BYTES_AT(N, Displacement<N>)
#define ALLTOALLW_ARGS from, n, from_at, types, to, counts, at, to_types, handle
#define ALLTOALLW_FORM alltoallw
#define ALLTOALLW_BUFFERS from, to
#define NEIGHBORW(N) BYTES_AT(N, MPI_Aint)
#define NEIGHBORW_ARGS ALLTOALLW_ARGS
#define NEIGHBORW_FORM alltoallw
#define NEIGHBORW_BUFFERS from, to
#define ALLREDUCE(N) const void *from, void *to, N n, MPI_Datatype type, MPI_Op op, MPI_Comm handle
#define ALLREDUCE_ARGS from, to, n, type, op, handle
#define ALLREDUCE_FORM allreduce
#define ALLREDUCE_BUFFERS from, to
#define REDUCE(N) \
  const void *from, void *to, N n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm handle
#define REDUCE_ARGS from, to, n, type, op, root, handle
#define REDUCE_FORM reduce
#define REDUCE_BUFFERS from, to
#define PARTS(N) \
  const void *from, void *to, const N n[], MPI_Datatype type, MPI_Op op, MPI_Comm handle
#define PARTS_ARGS from, to, n, type, op, handle
#define PARTS_FORM reduce_scatter
#define PARTS_BUFFERS from, to

#define COUNT_LEFT(call, why, KIND) \
  count_left(call, handle, why, [&](Across& across) { across.KIND##_FORM(KIND##_ARGS); })

// Inside a function template over `form`, MPI's own function: MPI runs the call, on copies where it
// needs them, and it is counted.
#define LEFT_TO_MPI(Id, KIND)                                                   \
  [&](Bypass why = kUnsupported) {                                              \
    return WPR_ON_HOST_##Id((COUNT_LEFT(k##Id, why, KIND), form(KIND##_ARGS))); \
  }

// MPI_Name, run by function<PMPI_Name>(), which asks where its buffers lie once it is known who
// runs the call.
// NOLINTBEGIN(bugprone-macro-parentheses): a template's name has none.
#define DEFINE_OWN(suffix, N, Id, Name, KIND, function)                                          \
  WPR_WRAP_QUICK(surely_stays_on_cores(k##Id, handle), Name##suffix, (KIND(N)), (KIND##_ARGS)) { \
    if (all_stay(k##Id, handle, KIND##_BUFFERS)) {                                               \
      return PMPI_##Name##suffix(KIND##_ARGS);                                                   \
    }                                                                                            \
    WPR_TRACE(k##Id, handle, KIND##_FORM(KIND##_ARGS),                                           \
              function<PMPI_##Name##suffix>(KIND##_ARGS));                                       \
  }
// NOLINTEND(bugprone-macro-parentheses)
