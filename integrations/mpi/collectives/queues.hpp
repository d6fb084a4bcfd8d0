// SPDX-License-Identifier: Apache-2.0
// Non-blocking collectives on threads: one for each communicator runs them as blocking ones.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>

#include "job/comms.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// Collective over the world: all ranks have threads for them, or none uses them.
void prepare_queues();
// Runs what is in the queue, and ends its thread. Collective, as freeing a communicator is.
void end_queue(Comm* comm);
void end_queues();

// nullptr: the call is left to MPI. `total` is equal on all members.
Queue* find_queue(Comm* comm, MPI_Count total);

// What the thread is to run; lives until MPI frees the request.
struct Errand {
  explicit Errand(Comm* of) : comm(of) { retain(comm); }
  std::function<int(MPI_Comm)> body;
  MPI_Request request = MPI_REQUEST_NULL;
  Comm* comm;
  int error = MPI_SUCCESS;
  std::atomic<bool> done{false};  // MPI's own way to say so is not known to race detectors
  bool raised = false;
  MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  bool owns[2] = {false, false};
};
// The type lives until the errand is done.
MPI_Datatype keep(Errand* errand, int i, MPI_Datatype datatype);
// The user's request is a generalized one.
int send_off(Call call, Queue* queue, Errand* errand, MPI_Request* request);

}  // namespace wirepress
