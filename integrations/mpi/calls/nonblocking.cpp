// SPDX-License-Identifier: Apache-2.0
// Non-blocking collectives that may be compressed, on threads (collectives/queues.cpp). Calls that
// members could not decide alike (the v and w forms) are left to MPI.
#include "calls/pmpi.hpp"
#include "collectives/queues.hpp"
#include "collectives/run.hpp"
#include "messages/types.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

bool is_predefined(MPI_Op op) {
  for (MPI_Op known : {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND,
                       MPI_BOR, MPI_BXOR}) {
    if (op == known) return true;
  }
  return false;
}

template <typename N>
bool reducible(MPI_Datatype datatype, N count, MPI_Op op, MPI_Count* total) {
  Type type;
  return is_predefined(op) && look_up(datatype, &type) && type.named &&
         product(count, type.size, total);
}

template <typename N>
int ibcast(void* buffer, N count, MPI_Datatype datatype, int root, MPI_Comm handle,
           MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count total = 0;
  const bool sound = comm && root >= 0 && root < comm->size && look_up(datatype, &type) &&
                     product(count, type.size, &total);
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(kIbcast, handle, kNonblocking,
               [&](Across& across) { across.bcast(buffer, count, datatype, root, handle); });
    return ibcast_form<N>::call(buffer, count, datatype, root, handle, request);
  }
  Errand* errand = new Errand(comm);
  datatype = keep(errand, 0, datatype);
  errand->body = [=](MPI_Comm base) {
    return our_bcast_form<N>::call(buffer, count, datatype, root, base);
  };
  return send_off(kIbcast, queue, errand, request);
}

template <typename N>
int iallreduce(const void* from, void* to, N count, MPI_Datatype datatype, MPI_Op op,
               MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  Queue* queue = comm && reducible(datatype, count, op, &total) ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(kIallreduce, handle, kNonblocking,
               [&](Across& across) { across.allreduce(from, to, count, datatype, op, handle); });
    return iallreduce_form<N>::call(from, to, count, datatype, op, handle, request);
  }
  Errand* errand = new Errand(comm);
  errand->body = [=](MPI_Comm base) {
    return our_allreduce_form<N>::call(from, to, count, datatype, op, base);
  };
  return send_off(kIallreduce, queue, errand, request);
}

template <typename N>
int ireduce(const void* from, void* to, N count, MPI_Datatype datatype, MPI_Op op, int root,
            MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  Queue* queue = comm && root >= 0 && root < comm->size && reducible(datatype, count, op, &total)
                     ? find_queue(comm, total)
                     : nullptr;
  if (!queue) {
    count_left(kIreduce, handle, kNonblocking,
               [&](Across& across) { across.reduce(from, to, count, datatype, op, root, handle); });
    return ireduce_form<N>::call(from, to, count, datatype, op, root, handle, request);
  }
  Errand* errand = new Errand(comm);
  errand->body = [=](MPI_Comm base) {
    return our_reduce_form<N>::call(from, to, count, datatype, op, root, base);
  };
  return send_off(kIreduce, queue, errand, request);
}

// Iallgather and Ialltoall: each member gets blocks of equal size.
template <template <typename> class Own, template <typename> class Plain, Call call, typename N>
int iblocks(const void* from, N count, MPI_Datatype type, void* to, N to_count,
            MPI_Datatype to_type, MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type sent, got;
  MPI_Count total = 0;
  const bool sound = comm && look_up(to_type, &got) && product(to_count, got.size, &total) &&
                     (from == MPI_IN_PLACE || look_up(type, &sent));
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(call, handle, kNonblocking, [&](Across& across) {
      if (call == kIallgather) {
        across.allgather(from, count, type, to, to_count, to_type, handle);
      } else {
        across.alltoall(from, count, type, to, to_count, to_type, handle);
      }
    });
    return Plain<N>::call(from, count, type, to, to_count, to_type, handle, request);
  }
  Errand* errand = new Errand(comm);
  if (from != MPI_IN_PLACE) type = keep(errand, 0, type);
  to_type = keep(errand, 1, to_type);
  errand->body = [=](MPI_Comm base) {
    return Own<N>::call(from, count, type, to, to_count, to_type, base);
  };
  return send_off(call, queue, errand, request);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_WRAP(MPI_Ibcast##suffix, void* buf, N count, MPI_Datatype type, int root, MPI_Comm comm,     \
           MPI_Request* request) {                                                                 \
    WPR_TRACE(kIbcast, comm, bcast(buf, count, type, root, comm).starts(request),                  \
              ibcast<N>(buf, count, type, root, comm, request));                                   \
  }                                                                                                \
  WPR_WRAP(MPI_Iallreduce##suffix, const void* from, void* to, N count, MPI_Datatype type,         \
           MPI_Op op, MPI_Comm comm, MPI_Request* request) {                                       \
    WPR_TRACE(kIallreduce, comm, allreduce(from, to, count, type, op, comm).starts(request),       \
              iallreduce<N>(from, to, count, type, op, comm, request));                            \
  }                                                                                                \
  WPR_WRAP(MPI_Ireduce##suffix, const void* from, void* to, N count, MPI_Datatype type, MPI_Op op, \
           int root, MPI_Comm comm, MPI_Request* request) {                                        \
    WPR_TRACE(kIreduce, comm, reduce(from, to, count, type, op, root, comm).starts(request),       \
              ireduce<N>(from, to, count, type, op, root, comm, request));                         \
  }                                                                                                \
  WPR_WRAP(MPI_Iallgather##suffix, const void* from, N count, MPI_Datatype type, void* to,         \
           N to_count, MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {                \
    WPR_TRACE(kIallgather, comm,                                                                   \
              allgather(from, count, type, to, to_count, to_type, comm).starts(request),           \
              iblocks<our_allgather_form, iallgather_form, kIallgather, N>(                        \
                  from, count, type, to, to_count, to_type, comm, request));                       \
  }                                                                                                \
  WPR_WRAP(MPI_Ialltoall##suffix, const void* from, N count, MPI_Datatype type, void* to,          \
           N to_count, MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {                \
    WPR_TRACE(kIalltoall, comm,                                                                    \
              alltoall(from, count, type, to, to_count, to_type, comm).starts(request),            \
              iblocks<our_alltoall_form, ialltoall_form, kIalltoall, N>(                           \
                  from, count, type, to, to_count, to_type, comm, request));                       \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
