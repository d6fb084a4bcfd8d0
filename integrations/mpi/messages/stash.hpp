// SPDX-License-Identifier: Apache-2.0
// Messages that a probe took from MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <shared_mutex>

#include "job/comms.hpp"
#include "job/job.hpp"
#include "messages/buffer.hpp"

namespace wirepress {

struct Stashed {
  int source = 0, tag = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};  // as the user is to see it
  Buffer data;
  size_t size = 0;
  int error = MPI_SUCCESS;
  std::atomic<bool> ready{false};
};

Stashed* take_stashed(Comm* comm, int source, int tag);  // nullptr: none
bool peek_stashed(Comm* comm, int source, int tag, MPI_Status* status);
// A probe saw `status`: may the message be a frame, whose raw size only a look tells?
bool needs_look(const Comm* comm, const MPI_Status& status);
// Moves the messages of that source up to the first one with that tag from MPI to the stash.
int gather_stash(Comm* comm, int source, int tag);
// Receives a matched message whole. Sets everything but `ready`.
void fetch(Stashed* stashed);
// A message handle for it, and back. nullptr: a handle of MPI's own.
int make_message(Stashed* stashed, MPI_Message* message, Comm* comm);
Stashed* take_message(MPI_Message* message, Comm** comm);
extern std::atomic<int> g_n_messages;

class PostingGuard {  // shared side of Comm::posting
 public:
  explicit PostingGuard(Comm* comm) : lock_(job().multiple ? &comm->posting : nullptr) {
    if (lock_) lock_->lock_shared();
  }
  ~PostingGuard() { unlock(); }
  void unlock() {
    if (lock_) lock_->unlock_shared();
    lock_ = nullptr;
  }

 private:
  std::shared_mutex* lock_;
};

}  // namespace wirepress
