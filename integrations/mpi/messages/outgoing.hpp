// SPDX-License-Identifier: Apache-2.0
// What MPI is given for a message that the program sends.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "job/comms.hpp"
#include "messages/buffer.hpp"
#include "messages/types.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// The user's data, or bytes in their place.
struct Outgoing {
  bool remote = false;    // it leaves the node
  bool framed = false;    // the bytes are compressed
  bool replaced = false;  // bytes go: the first `size` of the buffer given to prepare()
  // The bytes are the first piece only. Pieces sends the rest from `data`.
  bool in_pieces = false;
  bool there = false;          // data lie in memory of a device
  const Byte* data = nullptr;  // on a device, where the codec is given them there
  Type type;
  int candidate = 0, world_rank = 0;
  int node = -1;  // that it goes to
  size_t raw_size = 0;
  size_t size = 0;          // that MPI sends
  int error = MPI_SUCCESS;  // nothing can be sent: MPI does not reach the data, nor is there a copy
};

// Decides, packs, compresses into `bytes`, and counts.
Outgoing prepare(Call call, Comm* comm, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                 int dest, Buffer* bytes, bool blocking = false);
// The request owns the bytes until MPI sent them.
void keep_bytes(MPI_Request request, Buffer bytes);

}  // namespace wirepress
