// SPDX-License-Identifier: Apache-2.0
// Send, Recv and their kin. What is odd about the arguments is left to MPI to find and to say.
#include <utility>

#include "calls/wrap.hpp"
#include "choosing/sites.hpp"
#include "messages/incoming.hpp"
#include "messages/outgoing.hpp"
#include "messages/pieces.hpp"
#include "messages/quick.hpp"
#include "messages/requests.hpp"
#include "messages/stash.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

int finished(Comm* comm, int error) { return error ? raise(comm, error) : MPI_SUCCESS; }

template <auto form, Call call, typename N>
int send(const void* buffer, N count, MPI_Datatype type, int dest, int tag, MPI_Comm handle) {
  Comm* comm = active_comm(handle);
  if (!comm) return form(buffer, count, type, dest, tag, handle);
  Buffer& bytes = self_thread().frame;
  const bool blocking = call == kSend || call == kSsend;
  const Outgoing out = prepare(call, comm, buffer, count, type, dest, &bytes, blocking);
  if (out.error) return raise(comm, out.error);
  if (out.in_pieces) {
    Pieces pieces(call, out.candidate, out.data, out.type, out.world_rank, out.there);
    const int error = pieces.launch(&bytes, out.size, dest, tag, handle);
    return error ? error : finished(comm, pieces.finish());
  }
  if (!out.remote) return form(buffer, count, type, dest, tag, handle);
  const int error = timed(call, [&] {
    if (!out.replaced) return form(buffer, count, type, dest, tag, handle);
    const ByteRoom room(out.size);
    return form(bytes.data(), room.count, room.type, dest, tag, handle);
  });
  trim(&bytes);
  return error;
}

template <auto form, Call call, typename N>
int isend(const void* buffer, N count, MPI_Datatype type, int dest, int tag, MPI_Comm handle,
          MPI_Request* request) {
  Comm* comm = active_comm(handle);
  if (!comm) return form(buffer, count, type, dest, tag, handle, request);
  Buffer bytes;
  const Outgoing out = prepare(call, comm, buffer, count, type, dest, &bytes);
  if (out.error) return raise(comm, out.error);
  if (!out.replaced) return form(buffer, count, type, dest, tag, handle, request);
  const ByteRoom room(out.size);
  const int error = form(bytes.data(), room.count, room.type, dest, tag, handle, request);
  if (error == MPI_SUCCESS) keep_bytes(*request, std::move(bytes));
  return error;
}

// ---- receiving ----

int start_receive(Incoming* in, int source, int tag, MPI_Request* request) {
  const ByteRoom room(in->capacity);
  return PMPI_Irecv(in->landing(), room.count, room.type, source, tag, in->comm->handle, request);
}

// Receives the message, or takes it from the stash: *stashed.
int receive(Incoming* in, int source, int tag, MPI_Status* status, Stashed** stashed) {
  Comm* comm = in->comm;
  if (!job().multiple && g_n_large.load(std::memory_order_relaxed) == 0) {
    if ((*stashed = take_stashed(comm, source, tag))) return MPI_SUCCESS;
    const ByteRoom room(in->capacity);
    return PMPI_Recv(in->landing(), room.count, room.type, source, tag, comm->handle, status);
  }
  // Posted before another thread may move messages to the stash; waited for without the lock.
  MPI_Request request;
  {
    PostingGuard posting(comm);
    if ((*stashed = take_stashed(comm, source, tag))) return MPI_SUCCESS;
    const int error = start_receive(in, source, tag, &request);
    if (error) return error;
  }
  return wait_for(&request, status);
}

template <auto form, typename N>
int recv(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm handle,
         MPI_Status* status) {
  Comm* comm = aware_comm(handle, source);
  Incoming in;
  if (!comm || !describe(kRecv, comm, buffer, count, type, &in)) {
    return form(buffer, count, type, source, tag, handle, status);
  }
  if (const int error = make_room(&in)) return raise(comm, error);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  Stashed* stashed = nullptr;
  int error = timed(kRecv, [&] { return receive(&in, source, tag, status, &stashed); });
  if (error) return error;
  error = stashed ? finish_from_stash(&in, stashed, status) : finish(&in, status);
  return finished(comm, error);
}

template <auto form, typename N>
int irecv(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm handle,
          MPI_Request* request) {
  Comm* comm = aware_comm(handle, source);
  auto* record = comm ? new Record : nullptr;
  if (!comm || !describe(kIrecv, comm, buffer, count, type, &record->incoming)) {
    delete record;
    return form(buffer, count, type, source, tag, handle, request);
  }
  if (const int error = make_room(&record->incoming)) {
    delete record;
    return raise(comm, error);
  }
  Stashed* stashed;
  int error = MPI_SUCCESS;
  {
    PostingGuard posting(comm);
    stashed = take_stashed(comm, source, tag);
    if (!stashed) error = start_receive(&record->incoming, source, tag, request);
  }
  if (stashed) {
    prepare_record(record, stashed);
    error = make_complete_request(request);
  } else if (!error) {
    keep_type(&record->incoming);
  }
  if (error) {
    delete record;
    return error;
  }
  track(*request, record);
  return MPI_SUCCESS;
}

// Both halves on their own: where the message may be in the stash, or must not be overwritten.
template <typename N>
int exchange(Call call, Incoming* in, const void* sendbuf, N sendcount, MPI_Datatype sendtype,
             int dest, int sendtag, int source, int recvtag, MPI_Status* status) {
  Comm* comm = in->comm;
  MPI_Request request = MPI_REQUEST_NULL;
  Stashed* stashed;
  int error = MPI_SUCCESS;
  {
    PostingGuard posting(comm);
    stashed = take_stashed(comm, source, recvtag);
    if (!stashed) error = start_receive(in, source, recvtag, &request);
  }
  if (error) return error;
  Thread& thread = self_thread();
  const Outgoing out = prepare(call, comm, sendbuf, sendcount, sendtype, dest, &thread.frame, true);
  Pieces pieces(call, out.candidate, out.data, out.type, out.world_rank, out.there);
  error = timed(call, [&] {
    if (out.error) return raise(comm, out.error);
    if (out.in_pieces) return pieces.launch(&thread.frame, out.size, dest, sendtag, comm->handle);
    if (!out.replaced) {
      return WPR_LARGEST(PMPI_Send)(sendbuf, static_cast<LargestCount>(sendcount), sendtype, dest,
                                    sendtag, comm->handle);
    }
    const ByteRoom room(out.size);
    return PMPI_Send(thread.frame.data(), room.count, room.type, dest, sendtag, comm->handle);
  });
  trim(&thread.frame);
  if (error) {
    if (!stashed && PMPI_Cancel(&request) == MPI_SUCCESS) PMPI_Wait(&request, MPI_STATUS_IGNORE);
    delete stashed;
    return error;
  }
  if (!stashed) {
    error = timed(call, [&] { return wait_for(&request, status); });
  }
  int own = MPI_SUCCESS;
  if (!error) own = stashed ? finish_from_stash(in, stashed, status) : finish(in, status);
  if (out.in_pieces) {
    const int sent = finished(comm, pieces.finish());
    if (!error) error = sent;
  }
  return error ? error : finished(comm, own);
}

// Whether the send half may have to wait until the receive half is done.
template <typename N>
bool may_be_large(Comm* comm, N count, MPI_Datatype type, int dest) {
  Type known;
  return comm->takes_frames(dest) && count > 0 && look_up(type, &known) &&
         static_cast<double>(count) * static_cast<double>(known.size) >=
             static_cast<double>(job().pieces_from);
}

template <auto form, typename N>
int sendrecv(const void* sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag,
             void* recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag,
             MPI_Comm handle, MPI_Status* status) {
  Comm* comm = active_comm(handle);
  Incoming in;
  const bool aware = comm && comm->may_send_frames(source) &&
                     describe(kSendrecv, comm, recvbuf, recvcount, recvtype, &in);
  if (const int error = aware ? make_room(&in) : MPI_SUCCESS) return raise(comm, error);
  MPI_Status own{};
  if (aware && status == MPI_STATUS_IGNORE) status = &own;
  if (aware && (job().multiple || comm->n_stashed.load(std::memory_order_acquire) > 0 ||
                g_n_large.load(std::memory_order_relaxed) > 0 ||
                may_be_large(comm, sendcount, sendtype, dest))) {
    return exchange(kSendrecv, &in, sendbuf, sendcount, sendtype, dest, sendtag, source, recvtag,
                    status);
  }
  Thread& thread = self_thread();
  Outgoing out;
  if (comm) out = prepare(kSendrecv, comm, sendbuf, sendcount, sendtype, dest, &thread.frame);
  if (out.error) return raise(comm, out.error);
  const ByteRoom sent(out.replaced ? out.size : 0);
  if (out.replaced) {
    sendbuf = thread.frame.data();
    sendcount = static_cast<N>(sent.count);
    sendtype = sent.type;
  }
  if (!aware && !out.remote) {
    return form(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                recvtag, handle, status);
  }
  int error = timed(kSendrecv, [&] {
    if (!aware) {
      return form(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                  recvtag, handle, status);
    }
    const ByteRoom room(in.capacity);
    return form(sendbuf, sendcount, sendtype, dest, sendtag, in.landing(),
                static_cast<N>(room.count), room.type, source, recvtag, handle, status);
  });
  if (error) return error;
  if (aware) error = finish(&in, status);
  return error ? finished(comm, error) : MPI_SUCCESS;
}

template <auto form, typename N>
int sendrecv_replace(void* buffer, N count, MPI_Datatype type, int dest, int sendtag, int source,
                     int recvtag, MPI_Comm handle, MPI_Status* status) {
  Comm* comm = active_comm(handle);
  const auto plain = [&] {
    return form(buffer, count, type, dest, sendtag, source, recvtag, handle, status);
  };
  if (!comm) return plain();
  if (!comm->may_send_frames(source)) {
    // What comes may go where the user wants it: a frame is beside it.
    Thread& thread = self_thread();
    const Outgoing out = prepare(kSendrecvReplace, comm, buffer, count, type, dest, &thread.frame);
    if (out.error) return raise(comm, out.error);
    if (!out.remote) return plain();
    return timed(kSendrecvReplace, [&] {
      if (!out.replaced) return plain();
      const ByteRoom room(out.size);
      return WPR_LARGEST(PMPI_Sendrecv)(thread.frame.data(), room.count, room.type, dest, sendtag,
                                        buffer, static_cast<LargestCount>(count), type, source,
                                        recvtag, handle, status);
    });
  }
  Incoming in;
  if (!describe(kSendrecvReplace, comm, buffer, count, type, &in)) return plain();
  if (const int error = make_room(&in, true)) return raise(comm, error);
  MPI_Status own{};
  return exchange(kSendrecvReplace, &in, buffer, count, type, dest, sendtag, source, recvtag,
                  status == MPI_STATUS_IGNORE ? &own : status);
}

#ifdef WPR_MPI_ISENDRECV

// The request is the receive's. The send half has its own copy of the data, so that the user may
// have the buffer back when the receive completes, and is looked after like a freed request.
// (MPICH 4.0 leaves the status of its own Isendrecv empty: it could not tell what came.) What
// neither goes nor comes as a frame is MPI's: `plain`.
template <typename N, typename Plain>
int start_both(Call call, const void* sendbuf, N sendcount, MPI_Datatype sendtype, int dest,
               int sendtag, void* recvbuf, N recvcount, MPI_Datatype recvtype, int source,
               int recvtag, MPI_Comm handle, MPI_Request* request, Plain plain) {
  Comm* comm = active_comm(handle);
  Type type;
  const bool sends = dest != MPI_PROC_NULL;
  MPI_Count raw_size;
  if (!comm || sendcount < 0 || !look_up(sendtype, &type) ||
      __builtin_mul_overflow(sendcount, type.size, &raw_size) ||
      (sends && (dest < 0 || dest >= comm->size))) {
    return plain();
  }
  auto* record = new Record;
  Buffer& copy = record->frame;
  const Outgoing out = prepare(call, comm, sendbuf, sendcount, sendtype, dest, &copy);
  if (!out.error && !out.replaced && !comm->may_send_frames(source)) {
    delete record;
    return plain();
  }
  const size_t size = out.replaced ? out.size : static_cast<size_t>(raw_size);
  int error = out.error ? raise(comm, out.error) : MPI_SUCCESS;
  if (!error && sends && !out.replaced) {
    error = copy.reserve(size + 1) ? collect(sendbuf, sendcount, sendtype, copy.data(), size)
                                   : raise(comm, MPI_ERR_NO_MEM);
  }
  if (!error) {
    error = irecv<WPR_LARGEST(PMPI_Irecv)>(recvbuf, static_cast<LargestCount>(recvcount), recvtype,
                                           source, recvtag, handle, request);
  }
  if (error || !sends) {
    delete record;
    return error;
  }
  const ByteRoom room(size);
  error = PMPI_Isend(copy.data(), room.count, room.type, dest, sendtag, handle, &record->request);
  if (error) {
    delete record;
    return error;
  }
  adopt_orphan(record);
  return MPI_SUCCESS;
}

template <auto form, typename N>
int isendrecv(const void* sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag,
              void* recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag,
              MPI_Comm handle, MPI_Request* request) {
  return start_both(kIsendrecv, sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                    recvtype, source, recvtag, handle, request, [&] {
                      return form(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                  recvtype, source, recvtag, handle, request);
                    });
}

template <auto form, typename N>
int isendrecv_replace(void* buffer, N count, MPI_Datatype type, int dest, int sendtag, int source,
                      int recvtag, MPI_Comm handle, MPI_Request* request) {
  return start_both(
      kIsendrecvReplace, buffer, count, type, dest, sendtag, buffer, count, type, source, recvtag,
      handle, request,
      [&] { return form(buffer, count, type, dest, sendtag, source, recvtag, handle, request); });
}

#endif  // WPR_MPI_ISENDRECV

}  // namespace
}  // namespace wirepress

using namespace wirepress;

// What is found before it is known that all ranks are on this node is asked in the part apart.
#define DEFINE_SEND(suffix, N, Name)                                                              \
  WPR_WRAP_QUICK(surely_stays(k##Name, comm, dest), Name##suffix,                                 \
                 (const void* buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm), \
                 (buf, count, type, dest, tag, comm)) {                                           \
    if (stays(k##Name, comm, dest)) {                                                             \
      return PMPI_##Name##suffix(buf, count, type, dest, tag, comm);                              \
    }                                                                                             \
    WPR_TRACE(k##Name, comm, sends(buf, count, type, dest, tag),                                  \
              send<PMPI_##Name##suffix, k##Name>(buf, count, type, dest, tag, comm));             \
  }
#define DEFINE_ISEND(suffix, N, Name)                                                            \
  WPR_WRAP_QUICK(surely_stays(k##Name, comm, dest), Name##suffix,                                \
                 (const void* buf, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
                  MPI_Request* request),                                                         \
                 (buf, count, type, dest, tag, comm, request)) {                                 \
    if (stays(k##Name, comm, dest)) {                                                            \
      return PMPI_##Name##suffix(buf, count, type, dest, tag, comm, request);                    \
    }                                                                                            \
    WPR_TRACE(k##Name, comm, sends(buf, count, type, dest, tag).starts(request),                 \
              isend<PMPI_##Name##suffix, k##Name>(buf, count, type, dest, tag, comm, request));  \
  }
#define WPR_DEFINE(suffix, N)                                                                      \
  DEFINE_SEND(suffix, N, Send)                                                                     \
  DEFINE_SEND(suffix, N, Ssend)                                                                    \
  DEFINE_SEND(suffix, N, Rsend)                                                                    \
  DEFINE_SEND(suffix, N, Bsend)                                                                    \
  DEFINE_ISEND(suffix, N, Isend)                                                                   \
  DEFINE_ISEND(suffix, N, Issend)                                                                  \
  DEFINE_ISEND(suffix, N, Irsend)                                                                  \
  DEFINE_ISEND(suffix, N, Ibsend)                                                                  \
  WPR_WRAP_QUICK(surely_comes_raw(comm), Recv##suffix,                                             \
                 (void* buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm,       \
                  MPI_Status* status),                                                             \
                 (buf, count, type, source, tag, comm, status)) {                                  \
    if (comes_raw(comm, source)) {                                                                 \
      return PMPI_Recv##suffix(buf, count, type, source, tag, comm, status);                       \
    }                                                                                              \
    WPR_TRACE(kRecv, comm, receives(count, type, source, tag, &status),                            \
              recv<PMPI_Recv##suffix>(buf, count, type, source, tag, comm, status));               \
  }                                                                                                \
  WPR_WRAP_QUICK(surely_comes_raw(comm), Irecv##suffix,                                            \
                 (void* buf, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm,       \
                  MPI_Request* request),                                                           \
                 (buf, count, type, source, tag, comm, request)) {                                 \
    if (comes_raw(comm, source)) {                                                                 \
      return PMPI_Irecv##suffix(buf, count, type, source, tag, comm, request);                     \
    }                                                                                              \
    WPR_TRACE(kIrecv, comm, receives(count, type, source, tag, nullptr).starts(request, true),     \
              irecv<PMPI_Irecv##suffix>(buf, count, type, source, tag, comm, request));            \
  }                                                                                                \
  WPR_WRAP_QUICK(surely_stays(kSendrecv, comm, dest), Sendrecv##suffix,                            \
                 (const void* sendbuf, N sendcount, MPI_Datatype sendtype, int dest, int sendtag,  \
                  void* recvbuf, N recvcount, MPI_Datatype recvtype, int source, int recvtag,      \
                  MPI_Comm comm, MPI_Status* status),                                              \
                 (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,       \
                  source, recvtag, comm, status)) {                                                \
    if (comes_raw(comm, source) && stays(kSendrecv, comm, dest)) {                                 \
      return PMPI_Sendrecv##suffix(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,           \
                                   recvcount, recvtype, source, recvtag, comm, status);            \
    }                                                                                              \
    WPR_TRACE(                                                                                     \
        kSendrecv, comm,                                                                           \
        sends(sendbuf, sendcount, sendtype, dest, sendtag)                                         \
            .also_receives(recvcount, recvtype, source, recvtag, &status),                         \
        sendrecv<PMPI_Sendrecv##suffix>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,      \
                                        recvcount, recvtype, source, recvtag, comm, status));      \
  }                                                                                                \
  WPR_WRAP_QUICK(surely_stays(kSendrecvReplace, comm, dest), Sendrecv_replace##suffix,             \
                 (void* buf, N count, MPI_Datatype type, int dest, int sendtag, int source,        \
                  int recvtag, MPI_Comm comm, MPI_Status* status),                                 \
                 (buf, count, type, dest, sendtag, source, recvtag, comm, status)) {               \
    if (comes_raw(comm, source) && stays(kSendrecvReplace, comm, dest)) {                          \
      return PMPI_Sendrecv_replace##suffix(buf, count, type, dest, sendtag, source, recvtag, comm, \
                                           status);                                                \
    }                                                                                              \
    WPR_TRACE(kSendrecvReplace, comm,                                                              \
              sends(buf, count, type, dest, sendtag)                                               \
                  .also_receives(count, type, source, recvtag, &status),                           \
              sendrecv_replace<PMPI_Sendrecv_replace##suffix>(buf, count, type, dest, sendtag,     \
                                                              source, recvtag, comm, status));     \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef DEFINE_SEND
#undef DEFINE_ISEND
#undef WPR_DEFINE

#ifdef WPR_MPI_ISENDRECV
#define WPR_DEFINE(suffix, N)                                                                     \
  WPR_WRAP(MPI_Isendrecv##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,        \
           int dest, int sendtag, void* recvbuf, N recvcount, MPI_Datatype recvtype, int source,  \
           int recvtag, MPI_Comm comm, MPI_Request* request) {                                    \
    WPR_NOTE_CALLER;                                                                              \
    WPR_TRACE(                                                                                    \
        kIsendrecv, comm,                                                                         \
        sends(sendbuf, sendcount, sendtype, dest, sendtag)                                        \
            .also_receives(recvcount, recvtype, source, recvtag, nullptr)                         \
            .starts(request, true),                                                               \
        isendrecv<PMPI_Isendrecv##suffix>(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf,   \
                                          recvcount, recvtype, source, recvtag, comm, request));  \
  }                                                                                               \
  WPR_WRAP(MPI_Isendrecv_replace##suffix, void* buf, N count, MPI_Datatype type, int dest,        \
           int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {           \
    WPR_NOTE_CALLER;                                                                              \
    WPR_TRACE(kIsendrecvReplace, comm,                                                            \
              sends(buf, count, type, dest, sendtag)                                              \
                  .also_receives(count, type, source, recvtag, nullptr)                           \
                  .starts(request, true),                                                         \
              isendrecv_replace<PMPI_Isendrecv_replace##suffix>(buf, count, type, dest, sendtag,  \
                                                                source, recvtag, comm, request)); \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
#endif
