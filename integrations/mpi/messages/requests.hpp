// SPDX-License-Identifier: Apache-2.0
// Requests that need work when they complete.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "job/comms.hpp"
#include "job/job.hpp"
#include "messages/incoming.hpp"

namespace wirepress {

// A persistent send. The user holds MPI's own inactive request; a start that compresses sends by
// `inner`, and whatever completes the user's request completes `inner`.
struct Resend {
  Call call = kSendInit;
  const void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owns_type = false;
  int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = nullptr;
  MPI_Request inner = MPI_REQUEST_NULL;
};

struct Record {
  Record* next = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
  bool receives = false;
  bool persistent = false;
  bool active = true;       // persistent: started
  bool completed = false;   // persistent: started and complete; MPI does not know, or not any more
  bool failed = false;      // an early look found an error: the completing call says it
  bool prepared = false;    // the work is done: status and error below are the result
  bool busy = false;        // in the map, and a thread does its work: not to be taken
  int source = 0, tag = 0;  // persistent: to look in the stash; a send's destination
  int error = MPI_SUCCESS;
  MPI_Status status{};
  Incoming incoming;
  Buffer frame;  // outgoing, kept until it is sent
  std::unique_ptr<Resend> resend;

  bool sends_inner() const { return resend && resend->inner != MPI_REQUEST_NULL; }
};

extern std::atomic<size_t> g_n_records;
void put(Record* record);           // by record->request
Record* take(MPI_Request request);  // removes; nullptr: not ours
void free_record(Record* record);
// A request that is complete already, for a message that MPI does not have any more.
int make_complete_request(MPI_Request* request);
// The work of a completed request; returns an error class.
int settle(Record* record, MPI_Status* status);
// A receive that MPI knows as `request`; its record is kept until it completes.
void track(MPI_Request request, Record* record);
// Fills in the result of a receive from the stash, before its request completes.
void prepare_record(Record* record, Stashed* stashed);

// ---- receives that may bring a message in pieces ----

extern std::atomic<int> g_n_large;  // in the map
bool is_large(const Record& record);
// Does the work of large receives whose messages are here, so that their senders need not wait for
// the user to complete them. False: there was none.
bool advance_receives();
// The work of a receive that MPI completed, before the user completes it. False: MPI has not
// completed it yet.
bool settle_early(Record* record);
// PMPI_Wait of a message of this library's own. MPICH spins in it, and where ranks share cores
// keeps the one that is waited for from its own; Open MPI yields by itself, where it is told to.
int wait_apart(MPI_Request* request, MPI_Status* status);
// Between two looks at what MPI has. Threads that share MPI yield; otherwise MPI itself does or
// not.
inline void give_way() {
  if (job().multiple) sched_yield();
}
// MPI_Wait, which looks after other receives meanwhile.
int wait_for(MPI_Request* request, MPI_Status* status);

// ---- requests that the program freed while they were active ----

extern std::atomic<int> g_n_orphans;
void adopt_orphan(Record* record);
void drain_orphans(bool wait);
bool receives_orphans();

// Is this call to go straight to MPI? If not, it is also an occasion to look after orphans.
inline bool inert() {
  if (g_mode.load(std::memory_order_acquire) == kInert) return true;
  if (g_n_orphans.load(std::memory_order_relaxed) > 0) drain_orphans(false);
  return false;
}

// The communicator of a call; nullptr: MPI is to do it alone.
inline Comm* active_comm(MPI_Comm handle) { return inert() ? nullptr : find_comm(handle); }

// The same of a receive or probe: nullptr, too, where no compressed message can come.
inline Comm* aware_comm(MPI_Comm handle, int source) {
  Comm* comm = active_comm(handle);
  return comm && comm->may_send_frames(source) ? comm : nullptr;
}

}  // namespace wirepress
