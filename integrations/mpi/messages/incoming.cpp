// SPDX-License-Identifier: Apache-2.0
// What happens to a message after MPI received its bytes.
#include "messages/incoming.hpp"

#include <array>
#include <cstdio>
#include <cstring>

#include "messages/devices.hpp"
#include "messages/frames.hpp"
#include "messages/stash.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"

namespace wirepress {

size_t received_size(const MPI_Status& status) {
  MPI_Count size = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &size);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

void set_size(MPI_Status* status, size_t size) {
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(size));
}

bool describe(Call call, Comm* comm, void* buffer, MPI_Count count, MPI_Datatype datatype,
              Incoming* incoming) {
  Type type;
  MPI_Count capacity;
  if (count < 0 || !look_up(datatype, &type) ||
      __builtin_mul_overflow(count, type.size, &capacity)) {
    return false;
  }
  incoming->call = call;
  incoming->comm = comm;
  incoming->buffer = buffer;
  incoming->count = count;
  incoming->type = datatype;
  incoming->capacity = static_cast<size_t>(capacity);
  incoming->contiguous = type.contiguous || capacity == 0;
  incoming->there = capacity > 0 && on_device(buffer);
  return !incoming->contiguous || buffer || capacity == 0;
}

int make_room(Incoming* incoming, bool aside) {
  if (incoming->contiguous && !incoming->there && !aside) return MPI_SUCCESS;
  if (incoming->bounce.reserve(incoming->capacity, true)) {
    incoming->bounced = true;
    return MPI_SUCCESS;
  }
  ++self_thread().events.no_memory;
  std::array<char, 160> why;
  std::snprintf(why.data(), why.size(),
                "%s: no memory for a message of %zu bytes, which cannot be received where it goes",
                kCallNames[incoming->call], incoming->capacity);
  complain(why.data());
  return MPI_ERR_NO_MEM;
}

void keep_type(Incoming* incoming) {
  if (incoming->contiguous || incoming->owns_type) return;
  keep_type(&incoming->type, &incoming->owns_type);
}

void drop(Incoming* incoming) {
  if (incoming->owns_type) PMPI_Type_free(&incoming->type);
  incoming->owns_type = false;
}

namespace {

int store(Incoming* incoming, const Byte* packed, size_t size) {
  if (size == 0) return MPI_SUCCESS;
  if (incoming->contiguous) {
    if (incoming->there) return copy_bytes(incoming->buffer, packed, size);
    std::memcpy(incoming->buffer, packed, size);
    return MPI_SUCCESS;
  }
  return deliver(packed, size, incoming->buffer, incoming->count, incoming->type);
}

// From `wire`, which is not the user's buffer, to where the user wants it: a device expands what
// goes to its memory.
int expand_from(Incoming* incoming, const Byte* wire, size_t size, size_t* raw_size) {
  if (incoming->contiguous) {
    return expand(incoming->call, wire, size, static_cast<Byte*>(incoming->buffer),
                  incoming->capacity, raw_size);
  }
  Buffer packed;
  if (!packed.reserve(incoming->capacity, true)) return MPI_ERR_NO_MEM;
  const int error = expand(incoming->call, wire, size, packed.data(), incoming->capacity, raw_size);
  return error ? error : store(incoming, packed.data(), *raw_size);
}

int finish_from(Incoming* incoming, const Byte* wire, size_t size, MPI_Status* status) {
  CallStats& call = stats(incoming->call);
  ++call.received;
  call.received_wire_size += size;
  size_t raw_size = size;
  int error = MPI_SUCCESS;
  // What MPI has cut says so, but not by the size.
  const bool cut = size > incoming->capacity && wire == incoming->landing();
  if (!cut && is_framed(wire, size)) {
    ++call.received_framed;
    Buffer& aside = self_thread().wire;
    if (wire == incoming->buffer) {
      if (!aside.reserve(size, true)) return MPI_ERR_NO_MEM;
      std::memcpy(aside.data(), wire, size);
      wire = aside.data();
    }
    error = expand_from(incoming, wire, size, &raw_size);
    // After an error the count is that of a full buffer: the one number that is always legal.
    set_size(status, error ? incoming->capacity : raw_size);
  } else if (size > incoming->capacity) {  // from the stash: MPI reports it otherwise
    ++self_thread().events.truncated;
    error = MPI_ERR_TRUNCATE;
    set_size(status, incoming->capacity);
  } else if (wire != incoming->buffer) {
    error = store(incoming, wire, size);
  }
  if (!error) call.received_raw_size += raw_size;
  return error;
}

}  // namespace

int finish(Incoming* incoming, MPI_Status* status) {
  if (status->MPI_SOURCE == MPI_PROC_NULL) return MPI_SUCCESS;
  return finish_from(incoming, incoming->landing(), received_size(*status), status);
}

int finish_from_stash(Incoming* incoming, Stashed* stashed, MPI_Status* status) {
  give_status(stashed->status, status);
  const int error = stashed->error
                        ? stashed->error
                        : finish_from(incoming, stashed->data.data(), stashed->size, status);
  delete stashed;
  return error;
}

}  // namespace wirepress
