// SPDX-License-Identifier: Apache-2.0
// Persistent requests. A receive stays MPI's own; a send is compressed at every start.
#include <memory>

#include "calls/wrap.hpp"
#include "choosing/sites.hpp"
#include "messages/devices.hpp"
#include "messages/outgoing.hpp"
#include "messages/requests.hpp"
#include "messages/stash.hpp"
#include "messages/types.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

template <auto form, typename N>
int recv_init(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm handle,
              MPI_Request* request) {
  Comm* comm = aware_comm(handle, source);
  auto* record = comm ? new Record : nullptr;
  if (!comm || !describe(kRecvInit, comm, buffer, count, type, &record->incoming)) {
    delete record;
    return form(buffer, count, type, source, tag, handle, request);
  }
  Incoming& in = record->incoming;
  if (const int error = make_room(&in)) {
    delete record;
    return raise(comm, error);
  }
  const ByteRoom room(in.capacity);
  const int error =
      PMPI_Recv_init(in.landing(), room.count, room.type, source, tag, handle, request);
  if (error) {
    delete record;
    return error;
  }
  keep_type(&in);
  record->persistent = true;
  record->active = false;
  record->source = source;
  record->tag = tag;
  track(*request, record);
  return MPI_SUCCESS;
}

template <auto form, Call call, typename N>
int send_init(decltype(Resend::start) start_one, const void* buffer, N count, MPI_Datatype type,
              int dest, int tag, MPI_Comm handle, MPI_Request* request) {
  const int error = form(buffer, count, type, dest, tag, handle, request);
  Comm* comm = error ? nullptr : active_comm(handle);
  if (!comm || !comm->takes_frames(dest)) return error;
  auto* record = new Record;
  record->request = *request;
  record->persistent = true;
  record->active = false;
  record->source = dest;
  record->tag = tag;
  record->incoming.comm = comm;
  retain(comm);
  record->resend = std::make_unique<Resend>();
  Resend& resend = *record->resend;
  resend.call = call;
  resend.buffer = buffer;
  resend.count = count;
  resend.type = type;
  resend.start = start_one;
  Type known;
  if (look_up(type, &known) && !known.named) keep_type(&resend.type, &resend.owns_type);
  put(record);
  return MPI_SUCCESS;
}

int start_send(Record* record, MPI_Request* request) {
  Resend& resend = *record->resend;
  Comm* comm = record->incoming.comm;
  // A request outlives its communicator's handle, which must not be used then.
  if (!comm->alive.load(std::memory_order_acquire))
    return mpi_reaches(resend.buffer) ? PMPI_Start(request) : raise(comm, MPI_ERR_COMM);
  const Outgoing out = prepare(resend.call, comm, resend.buffer, resend.count, resend.type,
                               record->source, &record->frame);
  if (out.error) return raise(comm, out.error);
  if (!out.replaced) return PMPI_Start(request);
  const ByteRoom room(out.size);
  return resend.start(record->frame.data(), room.count, room.type, record->source, record->tag,
                      comm->handle, &resend.inner);
}

int start(MPI_Request* request) {
  count_start(*request);
  Record* record = inert() ? nullptr : take(*request);
  if (!record) return PMPI_Start(request);
  int error = MPI_SUCCESS;
  if (record->sends_inner()) {
    error = raise(record->incoming.comm, MPI_ERR_REQUEST);  // wrong, but MPI would start it
  } else if (!record->persistent || record->active) {
    error = PMPI_Start(request);  // wrong: MPI says so
  } else if (record->resend) {
    error = start_send(record, request);
    record->active = !error;
  } else {
    PostingGuard posting(record->incoming.comm);
    if (Stashed* stashed = take_stashed(record->incoming.comm, record->source, record->tag)) {
      posting.unlock();
      prepare_record(record, stashed);
      record->completed = true;
    } else {
      error = PMPI_Start(request);
    }
    record->active = !error;
  }
  put(record);
  return error;
}

int start_all(int n, MPI_Request* requests) {
  bool ours = false;
  for (int i = 0; i < n && !ours && g_n_records.load(std::memory_order_relaxed) > 0; ++i) {
    if (Record* record = take(requests[i])) {
      ours = true;
      put(record);
    }
  }
  if (inert() || !ours) {
    for (int i = 0; i < n; ++i) count_start(requests[i]);
    return PMPI_Startall(n, requests);
  }
  for (int i = 0; i < n; ++i) {
    if (const int error = start(&requests[i])) return error;
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define DEFINE_SEND(suffix, N, Name, start_one)                                                 \
  WPR_WRAP(MPI_##Name##_init##suffix, const void* buf, N count, MPI_Datatype type, int dest,    \
           int tag, MPI_Comm comm, MPI_Request* request) {                                      \
    WPR_TRACE(k##Name##Init, comm,                                                              \
              sends(buf, count, type, dest, tag).starts(request, false, true),                  \
              send_init<PMPI_##Name##_init##suffix, k##Name##Init>(start_one, buf, count, type, \
                                                                   dest, tag, comm, request));  \
  }
#define WPR_DEFINE(suffix, N)                                                                   \
  WPR_WRAP(MPI_Recv_init##suffix, void* buf, N count, MPI_Datatype type, int source, int tag,   \
           MPI_Comm comm, MPI_Request* request) {                                               \
    WPR_TRACE(kRecvInit, comm,                                                                  \
              receives(count, type, source, tag, nullptr).starts(request, true, true),          \
              recv_init<PMPI_Recv_init##suffix>(buf, count, type, source, tag, comm, request)); \
  }                                                                                             \
  DEFINE_SEND(suffix, N, Send, PMPI_Isend)                                                      \
  DEFINE_SEND(suffix, N, Ssend, PMPI_Issend)                                                    \
  DEFINE_SEND(suffix, N, Bsend, PMPI_Ibsend)                                                    \
  DEFINE_SEND(suffix, N, Rsend, PMPI_Irsend)
WPR_EACH_FORM(WPR_DEFINE)
#undef DEFINE_SEND
#undef WPR_DEFINE

WPR_WRAP(MPI_Start, MPI_Request* request) {
  WPR_NOTE_CALLER;
  WPR_TRACE(kStart, MPI_COMM_NULL, restarts(1, request),
            request ? start(request) : PMPI_Start(request));
}
WPR_WRAP(MPI_Startall, int n, MPI_Request requests[]) {
  WPR_NOTE_CALLER;
  WPR_TRACE(kStart, MPI_COMM_NULL, restarts(n, requests), start_all(n, requests));
}
