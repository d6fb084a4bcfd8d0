// SPDX-License-Identifier: Apache-2.0
// Persistent receives. Persistent sends go raw and need nothing.
#include "interposer.hpp"
#include "pmpi.hpp"

namespace wirepress {
namespace {

template <typename N>
int recv_init(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm handle,
              MPI_Request* request) {
  Comm* comm = inert() ? nullptr : find_comm(handle);
  if (comm && !comm->may_send_frames(source)) comm = nullptr;
  auto* record = comm ? new Record : nullptr;
  if (!comm || !describe(kRecvInit, comm, buffer, count, type, &record->incoming)) {
    delete record;
    return recv_init_form<N>::call(buffer, count, type, source, tag, handle, request);
  }
  Incoming& in = record->incoming;
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

int start(MPI_Request* request) {
  Record* record = inert() ? nullptr : take(*request);
  if (!record) return PMPI_Start(request);
  int error = MPI_SUCCESS;
  if (!record->persistent || record->active) {
    error = PMPI_Start(request);  // wrong: MPI says so
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
  if (inert() || !ours) return PMPI_Startall(n, requests);
  for (int i = 0; i < n; ++i) {
    if (const int error = start(&requests[i])) return error;
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_EXPORT int MPI_Recv_init##suffix(void* buf, N count, MPI_Datatype type, int source, int tag, \
                                       MPI_Comm comm, MPI_Request* request) {                      \
    return recv_init<N>(buf, count, type, source, tag, comm, request);                             \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE

WPR_EXPORT int MPI_Start(MPI_Request* request) {
  return request ? start(request) : PMPI_Start(request);
}
WPR_EXPORT int MPI_Startall(int n, MPI_Request requests[]) { return start_all(n, requests); }
