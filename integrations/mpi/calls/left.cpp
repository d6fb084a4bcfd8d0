// SPDX-License-Identifier: Apache-2.0
// Collectives that are left to MPI, and counted: non-blocking and persistent ones, those of
// neighbours, and prefix sums.
#include "calls/pmpi.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

using namespace wirepress;

// What each kind of collective is called with.
#define BCAST(N) void *buf, N n, MPI_Datatype type, int root, MPI_Comm comm
#define BCAST_ARGS buf, n, type, root, comm
#define BCAST_FORM bcast
#define ALL(N) const void *from, N n, MPI_Datatype type, void *to, N m, MPI_Datatype to_type
#define ALL_ARGS from, n, type, to, m, to_type
#define ALLGATHER(N) ALL(N), MPI_Comm comm
#define ALLGATHER_ARGS ALL_ARGS, comm
#define ALLGATHER_FORM allgather
#define ALLTOALL(N) ALLGATHER(N)
#define ALLTOALL_ARGS ALLGATHER_ARGS
#define ALLTOALL_FORM alltoall
#define GATHER(N) ALL(N), int root, MPI_Comm comm
#define GATHER_ARGS ALL_ARGS, root, comm
#define GATHER_FORM gather
#define SCATTER(N) GATHER(N)
#define SCATTER_ARGS GATHER_ARGS
#define SCATTER_FORM scatter
#define RECEIVED(N) void *to, const N counts[], const Displacement<N> at[], MPI_Datatype to_type
#define ALLGATHERV(N) const void *from, N n, MPI_Datatype type, RECEIVED(N), MPI_Comm comm
#define ALLGATHERV_ARGS from, n, type, to, counts, at, to_type, comm
#define ALLGATHERV_FORM allgatherv
#define GATHERV(N) const void *from, N n, MPI_Datatype type, RECEIVED(N), int root, MPI_Comm comm
#define GATHERV_ARGS from, n, type, to, counts, at, to_type, root, comm
#define GATHERV_FORM gatherv
#define SENT(N) const void *from, const N n[], const Displacement<N> from_at[], MPI_Datatype type
#define SCATTERV(N) SENT(N), void *to, N m, MPI_Datatype to_type, int root, MPI_Comm comm
#define SCATTERV_ARGS from, n, from_at, type, to, m, to_type, root, comm
#define SCATTERV_FORM scatterv
#define ALLTOALLV(N) SENT(N), RECEIVED(N), MPI_Comm comm
#define ALLTOALLV_ARGS from, n, from_at, type, to, counts, at, to_type, comm
#define ALLTOALLV_FORM alltoallv
#define BYTES_AT(N, A)                                                                    \
  const void *from, const N n[], const A from_at[], const MPI_Datatype types[], void *to, \
      const N counts[], const A at[], const MPI_Datatype to_types[], MPI_Comm comm
#define ALLTOALLW(N) BYTES_AT(N, Displacement<N>)
#define ALLTOALLW_ARGS from, n, from_at, types, to, counts, at, to_types, comm
#define ALLTOALLW_FORM alltoallw
#define NEIGHBORW(N) BYTES_AT(N, MPI_Aint)
#define NEIGHBORW_ARGS ALLTOALLW_ARGS
#define NEIGHBORW_FORM alltoallw
#define ALLREDUCE(N) const void *from, void *to, N n, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define ALLREDUCE_ARGS from, to, n, type, op, comm
#define ALLREDUCE_FORM allreduce
#define REDUCE(N) \
  const void *from, void *to, N n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm
#define REDUCE_ARGS from, to, n, type, op, root, comm
#define REDUCE_FORM reduce
#define PARTS(N) \
  const void *from, void *to, const N n[], MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define PARTS_ARGS from, to, n, type, op, comm
#define PARTS_FORM reduce_scatter

#define BARRIER(N) MPI_Comm comm
#define BARRIER_ARGS comm
#define BARRIER_FORM barrier

#define COUNT_LEFT(call, comm, why, KIND) \
  count_left(call, comm, why, [&](Across& across) { across.KIND##_FORM(KIND##_ARGS); })

#define DEFINE_BLOCKING(suffix, N, id, Name, KIND)                                      \
  WPR_WRAP(MPI_##Name##suffix, KIND(N)) {                                               \
    COUNT_LEFT(k##id, comm, kUnsupported, KIND);                                        \
    WPR_TRACE(k##id, comm, KIND##_FORM(KIND##_ARGS), PMPI_##Name##suffix(KIND##_ARGS)); \
  }
#define DEFINE_NONBLOCKING(suffix, N, Id, name, KIND)                 \
  WPR_WRAP(MPI_I##name##suffix, KIND(N), MPI_Request* request) {      \
    COUNT_LEFT(kI##Id, comm, kNonblocking, KIND);                     \
    WPR_TRACE(kI##Id, comm, KIND##_FORM(KIND##_ARGS).starts(request), \
              PMPI_I##name##suffix(KIND##_ARGS, request));            \
  }
#define DEFINE_PERSISTENT(suffix, N, Id, Name, KIND)                                               \
  WPR_WRAP(MPI_##Name##_init##suffix, KIND(N), MPI_Info info, MPI_Request* request) {              \
    WPR_TRACE(                                                                                     \
        k##Id##Init, comm, KIND##_FORM(KIND##_ARGS).starts(request, false, true),                  \
        make_persistent(PMPI_##Name##_init##suffix(KIND##_ARGS, info, request), k##Id##Init, comm, \
                        request, [&](Across& across) { across.KIND##_FORM(KIND##_ARGS); }));       \
  }

#define NEIGHBORS(suffix, N, DEFINE, Neighbor)                               \
  DEFINE(suffix, N, Neighbor##Allgather, Neighbor##_allgather, ALLGATHER)    \
  DEFINE(suffix, N, Neighbor##Allgatherv, Neighbor##_allgatherv, ALLGATHERV) \
  DEFINE(suffix, N, Neighbor##Alltoall, Neighbor##_alltoall, ALLTOALL)       \
  DEFINE(suffix, N, Neighbor##Alltoallv, Neighbor##_alltoallv, ALLTOALLV)    \
  DEFINE(suffix, N, Neighbor##Alltoallw, Neighbor##_alltoallw, NEIGHBORW)

#define WPR_DEFINE(suffix, N)                                                        \
  DEFINE_BLOCKING(suffix, N, Scan, Scan, ALLREDUCE)                                  \
  DEFINE_BLOCKING(suffix, N, Exscan, Exscan, ALLREDUCE)                              \
  NEIGHBORS(suffix, N, DEFINE_BLOCKING, Neighbor)                                    \
  NEIGHBORS(suffix, N, DEFINE_NONBLOCKING, neighbor)                                 \
  DEFINE_NONBLOCKING(suffix, N, gather, gather, GATHER)                              \
  DEFINE_NONBLOCKING(suffix, N, gatherv, gatherv, GATHERV)                           \
  DEFINE_NONBLOCKING(suffix, N, scatter, scatter, SCATTER)                           \
  DEFINE_NONBLOCKING(suffix, N, scatterv, scatterv, SCATTERV)                        \
  DEFINE_NONBLOCKING(suffix, N, allgatherv, allgatherv, ALLGATHERV)                  \
  DEFINE_NONBLOCKING(suffix, N, alltoallv, alltoallv, ALLTOALLV)                     \
  DEFINE_NONBLOCKING(suffix, N, alltoallw, alltoallw, ALLTOALLW)                     \
  DEFINE_NONBLOCKING(suffix, N, reduceScatter, reduce_scatter, PARTS)                \
  DEFINE_NONBLOCKING(suffix, N, reduceScatterBlock, reduce_scatter_block, ALLREDUCE) \
  DEFINE_NONBLOCKING(suffix, N, scan, scan, ALLREDUCE)                               \
  DEFINE_NONBLOCKING(suffix, N, exscan, exscan, ALLREDUCE)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE

// Only traced.
WPR_WRAP(MPI_Barrier, BARRIER(int)) {
  WPR_TRACE(kBarrier, comm, barrier(comm), PMPI_Barrier(comm));
}
WPR_WRAP(MPI_Ibarrier, BARRIER(int), MPI_Request* request) {
  WPR_TRACE(kIbarrier, comm, barrier(comm).starts(request), PMPI_Ibarrier(comm, request));
}

#ifdef WPR_MPI_PERSISTENT
namespace {

// After MPI made it; returns `error`.
template <typename Describe>
int make_persistent(int error, Call call, MPI_Comm handle, MPI_Request* request,
                    Describe describe) {
  Comm* comm = error ? nullptr : counted_comm(handle);
  if (!comm) return error;
  Across across(call, comm);
  if (comm->other_nodes > 0) describe(across);
  count_starts(*request, call, handle, across.bytes());
  return error;
}

}  // namespace

#define WPR_DEFINE(suffix, N)                                                       \
  NEIGHBORS(suffix, N, DEFINE_PERSISTENT, Neighbor)                                 \
  DEFINE_PERSISTENT(suffix, N, Bcast, Bcast, BCAST)                                 \
  DEFINE_PERSISTENT(suffix, N, Gather, Gather, GATHER)                              \
  DEFINE_PERSISTENT(suffix, N, Gatherv, Gatherv, GATHERV)                           \
  DEFINE_PERSISTENT(suffix, N, Scatter, Scatter, SCATTER)                           \
  DEFINE_PERSISTENT(suffix, N, Scatterv, Scatterv, SCATTERV)                        \
  DEFINE_PERSISTENT(suffix, N, Allgather, Allgather, ALLGATHER)                     \
  DEFINE_PERSISTENT(suffix, N, Allgatherv, Allgatherv, ALLGATHERV)                  \
  DEFINE_PERSISTENT(suffix, N, Alltoall, Alltoall, ALLTOALL)                        \
  DEFINE_PERSISTENT(suffix, N, Alltoallv, Alltoallv, ALLTOALLV)                     \
  DEFINE_PERSISTENT(suffix, N, Alltoallw, Alltoallw, ALLTOALLW)                     \
  DEFINE_PERSISTENT(suffix, N, Reduce, Reduce, REDUCE)                              \
  DEFINE_PERSISTENT(suffix, N, Allreduce, Allreduce, ALLREDUCE)                     \
  DEFINE_PERSISTENT(suffix, N, ReduceScatter, Reduce_scatter, PARTS)                \
  DEFINE_PERSISTENT(suffix, N, ReduceScatterBlock, Reduce_scatter_block, ALLREDUCE) \
  DEFINE_PERSISTENT(suffix, N, Scan, Scan, ALLREDUCE)                               \
  DEFINE_PERSISTENT(suffix, N, Exscan, Exscan, ALLREDUCE)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
#endif
