// SPDX-License-Identifier: Apache-2.0
// Messages that a probe had to take from MPI to learn their raw size.
//
// What is in the stash of a communicator is, for each source, the beginning of what that source
// sent and nobody received yet. So whoever looks in the stash first and asks MPI afterwards sees
// messages in the order in which they were sent, whatever tags are asked for.
#include "messages/stash.hpp"

#include <sched.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "messages/frames.hpp"
#include "messages/incoming.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"

namespace wirepress {

std::atomic<int> g_n_messages{0};

namespace {

struct Matched {
  Stashed* stashed = nullptr;
  Comm* comm = nullptr;
  MPI_Request sent = MPI_REQUEST_NULL;  // of the empty message that lends its handle
};

struct Messages {
  std::mutex lock;
  std::unordered_map<uint64_t, Matched> map;
};
Messages& messages() { return the<Messages>(); }

bool matches(const Stashed& stashed, int source, int tag) {
  return (source == MPI_ANY_SOURCE || source == stashed.source) &&
         (tag == MPI_ANY_TAG || tag == stashed.tag);
}

void wait_ready(const Stashed& stashed) {
  // Another thread is receiving it and makes MPI work meanwhile.
  while (!stashed.ready.load(std::memory_order_acquire)) sched_yield();
}

}  // namespace

Stashed* take_stashed(Comm* comm, int source, int tag) {
  if (comm->n_stashed.load(std::memory_order_acquire) == 0) return nullptr;
  Stashed* found = nullptr;
  {
    std::lock_guard hold(comm->stash_lock);
    for (auto it = comm->stash.begin(); it != comm->stash.end(); ++it) {
      if (!matches(**it, source, tag)) continue;
      found = *it;
      comm->stash.erase(it);
      comm->n_stashed.fetch_sub(1, std::memory_order_release);
      break;
    }
  }
  if (found) wait_ready(*found);
  return found;
}

bool peek_stashed(Comm* comm, int source, int tag, MPI_Status* status) {
  for (;;) {
    if (comm->n_stashed.load(std::memory_order_acquire) == 0) return false;
    {
      std::lock_guard hold(comm->stash_lock);
      const Stashed* found = nullptr;
      for (const Stashed* stashed : comm->stash) {
        if (matches(*stashed, source, tag)) {
          found = stashed;
          break;
        }
      }
      if (!found) return false;
      if (found->ready.load(std::memory_order_acquire)) {
        give_status(found->status, status);
        return true;
      }
    }
    sched_yield();
  }
}

bool needs_look(const Comm* comm, const MPI_Status& status) {
  return status.MPI_SOURCE >= 0 && comm->may_send_frames(status.MPI_SOURCE) &&
         received_size(status) >= kMinWire;
}

void fetch(Stashed* stashed) {
  ++self_thread().events.stashed;
  const size_t size = received_size(stashed->status);
  stashed->size = size;
  if (size > 0 && !stashed->data.reserve(size, true)) {
    stashed->error = MPI_ERR_NO_MEM;
    ++self_thread().events.no_memory;
  }
  const ByteRoom room(stashed->error ? 0 : size);
  const int error =
      PMPI_Mrecv(stashed->data.data(), room.count, room.type, &stashed->message, MPI_STATUS_IGNORE);
  if (!stashed->error) stashed->error = error;
  uint64_t raw_size;
  if (!stashed->error && is_framed(stashed->data.data(), size) &&
      framed_size(stashed->data.data(), size, &raw_size) == MPI_SUCCESS) {
    set_size(&stashed->status, raw_size);
  }
}

int gather_stash(Comm* comm, int source, int tag) {
  std::vector<Stashed*> taken;
  int error = MPI_SUCCESS;
  {
    std::unique_lock hold(comm->posting, std::defer_lock);
    if (job().multiple) hold.lock();
    for (bool last = false; !last;) {
      auto* stashed = new Stashed;
      int flag = 0;
      error = PMPI_Improbe(source, MPI_ANY_TAG, comm->handle, &flag, &stashed->message,
                           &stashed->status);
      if (error != MPI_SUCCESS || !flag) {  // not flag: another thread received it
        delete stashed;
        break;
      }
      stashed->source = stashed->status.MPI_SOURCE;
      stashed->tag = stashed->status.MPI_TAG;
      last = stashed->tag == tag;
      taken.push_back(stashed);
      std::lock_guard list(comm->stash_lock);
      comm->stash.push_back(stashed);
      comm->n_stashed.fetch_add(1, std::memory_order_release);
    }
  }
  for (Stashed* stashed : taken) {
    fetch(stashed);
    stashed->ready.store(true, std::memory_order_release);
  }
  return error;
}

int make_message(Stashed* stashed, MPI_Message* message, Comm* comm) {
  // A value for MPI_Message cannot be invented: this one belongs to an empty message to oneself.
  static std::atomic<int> next{0};
  const int tag = kTagMessage + (next.fetch_add(1, std::memory_order_relaxed) & kTagMask);
  Matched matched{stashed, comm};
  int error = PMPI_Isend(nullptr, 0, MPI_BYTE, 0, tag, job().self, &matched.sent);
  if (error == MPI_SUCCESS) error = PMPI_Mprobe(0, tag, job().self, message, MPI_STATUS_IGNORE);
  if (error != MPI_SUCCESS) return error;
  retain(comm);
  std::lock_guard hold(messages().lock);
  messages().map[handle_bits(*message)] = matched;
  g_n_messages.fetch_add(1, std::memory_order_release);
  return MPI_SUCCESS;
}

Stashed* take_message(MPI_Message* message, Comm** comm) {
  if (g_n_messages.load(std::memory_order_acquire) == 0) return nullptr;
  Matched matched;
  MPI_Message own = *message;
  {
    std::lock_guard hold(messages().lock);
    const auto found = messages().map.find(handle_bits(own));
    if (found == messages().map.end()) return nullptr;
    matched = found->second;
    messages().map.erase(found);
    g_n_messages.fetch_sub(1, std::memory_order_release);
  }
  // The send may complete only now (MPICH), and must not be freed before (MPICH 4.0 with threads).
  PMPI_Mrecv(nullptr, 0, MPI_BYTE, &own, MPI_STATUS_IGNORE);
  PMPI_Wait(&matched.sent, MPI_STATUS_IGNORE);
  *message = MPI_MESSAGE_NULL;
  *comm = matched.comm;
  return matched.stashed;
}

}  // namespace wirepress
