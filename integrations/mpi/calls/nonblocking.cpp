// SPDX-License-Identifier: Apache-2.0
// Non-blocking collectives that may be compressed, on threads (collectives/queues.cpp). Calls that
// members could not decide alike (the v and w forms) are left to MPI.
#include "calls/arguments.hpp"
#include "collectives/queues.hpp"
#include "collectives/run.hpp"
#include "messages/types.hpp"

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

template <auto form, auto own, typename N>
int ibcast(BCAST(N), MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type known;
  MPI_Count total = 0;
  const bool sound = comm && root >= 0 && root < comm->size && look_up(type, &known) &&
                     product(n, known.size, &total);
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    COUNT_LEFT(kIbcast, kNonblocking, BCAST);
    return form(BCAST_ARGS, request);
  }
  auto* errand = new Errand(comm);
  type = keep(errand, 0, type);
  errand->body = [=](MPI_Comm base) { return own(buf, n, type, root, base); };
  return send_off(kIbcast, queue, errand, request);
}

template <auto form, auto own, typename N>
int iallreduce(ALLREDUCE(N), MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  Queue* queue = comm && reducible(type, n, op, &total) ? find_queue(comm, total) : nullptr;
  if (!queue) {
    COUNT_LEFT(kIallreduce, kNonblocking, ALLREDUCE);
    return form(ALLREDUCE_ARGS, request);
  }
  auto* errand = new Errand(comm);
  errand->body = [=](MPI_Comm base) { return own(from, to, n, type, op, base); };
  return send_off(kIallreduce, queue, errand, request);
}

template <auto form, auto own, typename N>
int ireduce(REDUCE(N), MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  const bool sound = comm && root >= 0 && root < comm->size && reducible(type, n, op, &total);
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    COUNT_LEFT(kIreduce, kNonblocking, REDUCE);
    return form(REDUCE_ARGS, request);
  }
  auto* errand = new Errand(comm);
  errand->body = [=](MPI_Comm base) { return own(from, to, n, type, op, root, base); };
  return send_off(kIreduce, queue, errand, request);
}

// Iallgather and Ialltoall: each member gets blocks of equal size.
template <Call call, auto form, auto own, typename N>
int iblocks(ALLGATHER(N), MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type sent, got;
  MPI_Count total = 0;
  const bool sound = comm && look_up(to_type, &got) && product(m, got.size, &total) &&
                     (from == MPI_IN_PLACE || look_up(type, &sent));
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    if (call == kIallgather) {
      COUNT_LEFT(call, kNonblocking, ALLGATHER);
    } else {
      COUNT_LEFT(call, kNonblocking, ALLTOALL);
    }
    return form(ALLGATHER_ARGS, request);
  }
  auto* errand = new Errand(comm);
  if (from != MPI_IN_PLACE) type = keep(errand, 0, type);
  to_type = keep(errand, 1, to_type);
  errand->body = [=](MPI_Comm base) { return own(from, n, type, to, m, to_type, base); };
  return send_off(call, queue, errand, request);
}

template <auto form, auto own, typename N>
int iallgather(ALLGATHER(N), MPI_Request* request) {
  return iblocks<kIallgather, form, own>(ALLGATHER_ARGS, request);
}

template <auto form, auto own, typename N>
int ialltoall(ALLTOALL(N), MPI_Request* request) {
  return iblocks<kIalltoall, form, own>(ALLTOALL_ARGS, request);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define DEFINE_NONBLOCKING(suffix, N, name, Name, KIND)                                 \
  WPR_WRAP(MPI_I##name##suffix, KIND(N), MPI_Request* request) {                        \
    WPR_TRACE(kI##name, handle, KIND##_FORM(KIND##_ARGS).starts(request),               \
              i##name<PMPI_I##name##suffix, MPI_##Name##suffix>(KIND##_ARGS, request)); \
  }
#define WPR_DEFINE(suffix, N)                                    \
  DEFINE_NONBLOCKING(suffix, N, bcast, Bcast, BCAST)             \
  DEFINE_NONBLOCKING(suffix, N, allreduce, Allreduce, ALLREDUCE) \
  DEFINE_NONBLOCKING(suffix, N, reduce, Reduce, REDUCE)          \
  DEFINE_NONBLOCKING(suffix, N, allgather, Allgather, ALLGATHER) \
  DEFINE_NONBLOCKING(suffix, N, alltoall, Alltoall, ALLTOALL)
WPR_EACH_FORM(WPR_DEFINE)
#undef DEFINE_NONBLOCKING
#undef WPR_DEFINE
