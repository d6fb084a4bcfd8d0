// SPDX-License-Identifier: Apache-2.0
// Probes, matched or not. A compressed message's size is not the one that MPI reports, and a probe
// cannot look inside: such messages are taken from MPI (stash.cpp).
#include <sched.h>

#include <memory>

#include "calls/wrap.hpp"
#include "messages/devices.hpp"
#include "messages/incoming.hpp"
#include "messages/requests.hpp"
#include "messages/stash.hpp"
#include "messages/types.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

// What MPI sees, or the stash once the message had to be looked into.
int iprobe(Comm* comm, int source, int tag, int* flag, MPI_Status* status) {
  *flag = 0;
  for (;;) {
    MPI_Status seen{};  // MPICH's probes leave the bit for "cancelled" as it was
    {
      // Between both looks no other thread may take a message from MPI to the stash: the next one
      // of the same tag would be seen in its place.
      PostingGuard posting(comm);
      if (peek_stashed(comm, source, tag, status)) return *flag = 1, MPI_SUCCESS;
      const int error = PMPI_Iprobe(source, tag, comm->handle, flag, &seen);
      if (error || !*flag) return error;
    }
    if (!needs_look(comm, seen)) {
      give_status(seen, status);
      return MPI_SUCCESS;
    }
    if (const int failed = gather_stash(comm, seen.MPI_SOURCE, seen.MPI_TAG)) return failed;
  }
}

int probe(Comm* comm, int source, int tag, MPI_Status* status) {
  for (;;) {
    // A thread that waits inside MPI would not see what another thread stashes.
    if (!job().multiple && comm->n_stashed.load(std::memory_order_relaxed) == 0) {
      if (const int error = PMPI_Probe(source, tag, comm->handle, MPI_STATUS_IGNORE)) return error;
    }
    int flag;
    const int error = iprobe(comm, source, tag, &flag, status);
    if (error || flag) return error;
    if (job().multiple) sched_yield();
  }
}

int improbe(Comm* comm, int source, int tag, int* flag, MPI_Message* message, MPI_Status* status) {
  MPI_Status seen{};
  Stashed* stashed;
  *flag = 0;
  {
    PostingGuard posting(comm);
    stashed = take_stashed(comm, source, tag);
    if (!stashed) {
      const int error = PMPI_Improbe(source, tag, comm->handle, flag, message, &seen);
      if (error || !*flag) return error;
    }
  }
  if (!stashed && needs_look(comm, seen)) {
    stashed = new Stashed;
    stashed->source = seen.MPI_SOURCE;
    stashed->tag = seen.MPI_TAG;
    stashed->message = *message;
    stashed->status = seen;
    fetch(stashed);
  }
  *flag = 1;
  if (stashed) seen = stashed->status;
  give_status(seen, status);
  return stashed ? make_message(stashed, message, comm) : MPI_SUCCESS;
}

int mprobe(Comm* comm, int source, int tag, MPI_Message* message, MPI_Status* status) {
  for (;;) {
    if (!job().multiple && comm->n_stashed.load(std::memory_order_relaxed) == 0) {
      if (const int error = PMPI_Probe(source, tag, comm->handle, MPI_STATUS_IGNORE)) return error;
    }
    int flag;
    const int error = improbe(comm, source, tag, &flag, message, status);
    if (error || flag) return error;
    if (job().multiple) sched_yield();
  }
}

// A message of MPI's own that goes where MPI must not write: beside it, whoever sent it.
template <typename N>
bool comes_aside(Call call, void* buffer, N count, MPI_Datatype type, Incoming* in) {
  return !inert() && count > 0 && on_device(buffer) && !mpi_reaches(buffer) &&
         describe(call, find_comm(MPI_COMM_WORLD), buffer, count, type, in) && in->comm;
}

template <auto form, typename N>
int mrecv_plain(void* buffer, N count, MPI_Datatype type, MPI_Message* message,
                MPI_Status* status) {
  Incoming in;
  if (!comes_aside(kMrecv, buffer, count, type, &in)) {
    return form(buffer, count, type, message, status);
  }
  if (const int error = make_room(&in)) return raise(in.comm, error);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  const ByteRoom room(in.capacity);
  int error = PMPI_Mrecv(in.landing(), room.count, room.type, message, status);
  if (error) return error;
  error = finish(&in, status);
  return error ? raise(in.comm, error) : MPI_SUCCESS;
}

template <auto form, typename N>
int mrecv(void* buffer, N count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  Comm* comm = nullptr;
  Incoming in;
  Stashed* stashed = nullptr;
  if (!inert() && message) stashed = take_message(message, &comm);
  if (!stashed) return mrecv_plain<form>(buffer, count, type, message, status);
  int error = MPI_ERR_ARG;
  MPI_Status own{};
  if (describe(kMrecv, comm, buffer, count, type, &in)) {
    error = finish_from_stash(&in, stashed, status == MPI_STATUS_IGNORE ? &own : status);
  } else {
    delete stashed;
  }
  if (error) raise(comm, error);
  release(comm);
  return error;
}

template <auto form, typename N>
int imrecv_plain(void* buffer, N count, MPI_Datatype type, MPI_Message* message,
                 MPI_Request* request) {
  auto record = std::make_unique<Record>();
  Incoming& in = record->incoming;
  if (!comes_aside(kImrecv, buffer, count, type, &in)) {
    return form(buffer, count, type, message, request);
  }
  if (const int error = make_room(&in)) return raise(in.comm, error);
  const ByteRoom room(in.capacity);
  const int error = PMPI_Imrecv(in.landing(), room.count, room.type, message, request);
  if (error) return error;
  keep_type(&in);
  track(*request, record.release());
  return MPI_SUCCESS;
}

template <auto form, typename N>
int imrecv(void* buffer, N count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  Comm* comm = nullptr;
  Stashed* stashed = nullptr;
  if (!inert() && message) stashed = take_message(message, &comm);
  if (!stashed) return imrecv_plain<form>(buffer, count, type, message, request);
  auto* record = new Record;
  int error = MPI_ERR_ARG;
  if (describe(kImrecv, comm, buffer, count, type, &record->incoming)) {
    prepare_record(record, stashed);
    error = make_complete_request(request);
    if (!error) track(*request, record);
  } else {
    delete stashed;
  }
  if (error) {
    delete record;
    raise(comm, error);
  }
  release(comm);
  return error;
}

int any_probe(int source, int tag, MPI_Comm handle, MPI_Status* status) {
  Comm* comm = aware_comm(handle, source);
  return comm ? probe(comm, source, tag, status) : PMPI_Probe(source, tag, handle, status);
}

int any_iprobe(int source, int tag, MPI_Comm handle, int* flag, MPI_Status* status) {
  Comm* comm = aware_comm(handle, source);
  return comm ? iprobe(comm, source, tag, flag, status)
              : PMPI_Iprobe(source, tag, handle, flag, status);
}

int any_mprobe(int source, int tag, MPI_Comm handle, MPI_Message* message, MPI_Status* status) {
  Comm* comm = aware_comm(handle, source);
  return comm ? mprobe(comm, source, tag, message, status)
              : PMPI_Mprobe(source, tag, handle, message, status);
}

int any_improbe(int source, int tag, MPI_Comm handle, int* flag, MPI_Message* message,
                MPI_Status* status) {
  Comm* comm = aware_comm(handle, source);
  return comm ? improbe(comm, source, tag, flag, message, status)
              : PMPI_Improbe(source, tag, handle, flag, message, status);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

WPR_WRAP(MPI_Probe, int source, int tag, MPI_Comm handle, MPI_Status* status) {
  WPR_TRACE(kProbe, handle, probes(source, tag, nullptr, nullptr, &status),
            any_probe(source, tag, handle, status));
}
WPR_WRAP(MPI_Iprobe, int source, int tag, MPI_Comm handle, int* flag, MPI_Status* status) {
  WPR_TRACE(kIprobe, handle, probes(source, tag, flag, nullptr, &status),
            any_iprobe(source, tag, handle, flag, status));
}
WPR_WRAP(MPI_Mprobe, int source, int tag, MPI_Comm handle, MPI_Message* message,
         MPI_Status* status) {
  WPR_TRACE(kMprobe, handle, probes(source, tag, nullptr, message, &status),
            any_mprobe(source, tag, handle, message, status));
}
WPR_WRAP(MPI_Improbe, int source, int tag, MPI_Comm handle, int* flag, MPI_Message* message,
         MPI_Status* status) {
  WPR_TRACE(kImprobe, handle, probes(source, tag, flag, message, &status),
            any_improbe(source, tag, handle, flag, message, status));
}

#define WPR_DEFINE(suffix, N)                                                               \
  WPR_WRAP(MPI_Mrecv##suffix, void* buf, N count, MPI_Datatype type, MPI_Message* message,  \
           MPI_Status* status) {                                                            \
    WPR_TRACE(kMrecv, MPI_COMM_NULL, matched(message, count, type, &status),                \
              mrecv<PMPI_Mrecv##suffix>(buf, count, type, message, status));                \
  }                                                                                         \
  WPR_WRAP(MPI_Imrecv##suffix, void* buf, N count, MPI_Datatype type, MPI_Message* message, \
           MPI_Request* request) {                                                          \
    WPR_TRACE(kImrecv, MPI_COMM_NULL,                                                       \
              matched(message, count, type, nullptr).starts(request, true),                 \
              imrecv<PMPI_Imrecv##suffix>(buf, count, type, message, request));             \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
