// SPDX-License-Identifier: Apache-2.0
// What becomes of a message that MPI received.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "job/comms.hpp"
#include "messages/buffer.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// One receive that a compressed message may come into. MPI receives bytes: into the user's own
// buffer where that is contiguous and the cores reach it, else into `bounce`.
struct Incoming {
  Call call = kRecv;
  Comm* comm = nullptr;
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owns_type = false;
  bool contiguous = true;
  bool there = false;  // in memory of a device
  bool bounced = false;
  size_t capacity = 0;  // packed bytes
  Buffer bounce;

  Byte* landing() const { return bounced ? bounce.data() : static_cast<Byte*>(buffer); }
};

// False: leave the call to MPI.
bool describe(Call call, Comm* comm, void* buffer, MPI_Count count, MPI_Datatype type,
              Incoming* incoming);
// Before MPI is to receive it: memory where the user's buffer is none for MPI, or always (`aside`).
// An error class, of which a sentence was said: without the memory MPI must not have the call, for
// it would put a frame where the user expects data, or write to a device that it does not reach.
int make_room(Incoming* incoming, bool aside = false);
// Keeps the type alive beyond the call, until drop().
void keep_type(Incoming* incoming);
void drop(Incoming* incoming);
// After MPI received: expands or unpacks, and corrects the status. Returns an error class, not
// raised yet.
int finish(Incoming* incoming, MPI_Status* status);
// The same from a message that a probe took before; frees it.
int finish_from_stash(Incoming* incoming, Stashed* stashed, MPI_Status* status);

size_t received_size(const MPI_Status& status);
void set_size(MPI_Status* status, size_t size);
// A status as MPI hands it to the user: outside of arrays MPI_ERROR keeps its value.
inline void give_status(const MPI_Status& from, MPI_Status* to) {
  if (to == MPI_STATUS_IGNORE) return;
  const int kept = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = kept;
}

}  // namespace wirepress
