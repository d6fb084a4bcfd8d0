// SPDX-License-Identifier: Apache-2.0
// Collectives that are left to MPI, and counted: non-blocking and persistent ones, and prefix sums.
#include "calls/arguments.hpp"

using namespace wirepress;

#define DEFINE_BLOCKING(suffix, N, id, Name, KIND)                                               \
  WPR_WRAP_QUICK(surely_stays_on_cores(k##id, handle), Name##suffix, (KIND(N)), (KIND##_ARGS)) { \
    COUNT_LEFT(k##id, kUnsupported, KIND);                                                       \
    WPR_TRACE(k##id, handle, KIND##_FORM(KIND##_ARGS),                                           \
              WPR_ON_HOST(k##id, (reach_of(n, type)), (reach_of(n, type)),                       \
                          PMPI_##Name##suffix(KIND##_ARGS)));                                    \
  }
#define DEFINE_NONBLOCKING(suffix, N, Id, name, KIND)                                             \
  WPR_WRAP_QUICK(surely_stays(kI##Id, handle), I##name##suffix, (KIND(N), MPI_Request * request), \
                 (KIND##_ARGS, request)) {                                                        \
    COUNT_LEFT(kI##Id, kNonblocking, KIND);                                                       \
    WPR_TRACE(kI##Id, handle, KIND##_FORM(KIND##_ARGS).starts(request),                           \
              PMPI_I##name##suffix(KIND##_ARGS, request));                                        \
  }
#define DEFINE_PERSISTENT(suffix, N, Id, Name, KIND)                                               \
  WPR_WRAP(MPI_##Name##_init##suffix, KIND(N), MPI_Info info, MPI_Request* request) {              \
    WPR_TRACE(k##Id##Init, handle, KIND##_FORM(KIND##_ARGS).starts(request, false, true),          \
              make_persistent(PMPI_##Name##_init##suffix(KIND##_ARGS, info, request), k##Id##Init, \
                              handle, request,                                                     \
                              [&](Across& across) { across.KIND##_FORM(KIND##_ARGS); }));          \
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
WPR_WRAP(MPI_Barrier, MPI_Comm handle) {
  WPR_TRACE(kBarrier, handle, barrier(handle), PMPI_Barrier(handle));
}
WPR_WRAP(MPI_Ibarrier, MPI_Comm handle, MPI_Request* request) {
  WPR_TRACE(kIbarrier, handle, barrier(handle).starts(request), PMPI_Ibarrier(handle, request));
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
#undef DEFINE_BLOCKING
#undef DEFINE_NONBLOCKING
#undef DEFINE_PERSISTENT
#undef NEIGHBORS
#undef WPR_DEFINE
#endif
