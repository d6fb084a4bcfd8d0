// SPDX-License-Identifier: Apache-2.0
// Calls that need nothing of this library, by one look: those among ranks of a node, and
// completions while no request needs work. They are some nanoseconds beside MPI's hundred, so what
// programs call most asks here first, before it has a stack frame.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "job/comms.hpp"
#include "messages/devices.hpp"
#include "messages/requests.hpp"
#include "messages/thread.hpp"
#include "recording/calls.hpp"
#include "recording/trace.hpp"

namespace wirepress {

// The communicator if it is the one that this thread used last, and nothing but it decides what
// becomes of the call: the job is on, nothing is recorded, no orphan is looked after.
inline const Comm* quick_comm(MPI_Comm handle) {
  const LastComm& last = t_last_comm;
  return last.handle == handle && last.epoch == g_quick_epoch.load(std::memory_order_acquire)
             ? last.comm
             : nullptr;
}

inline void count_inside(Thread* thread, Call call) {
  CallStats& counts = thread->calls[call];
  ++counts.messages;
  ++counts.bypass[kSameHost];
}

// A message to a rank of this node, which it counts.
inline bool stays(Call call, MPI_Comm handle, int dest) {
  const Comm* comm = quick_comm(handle);
  Thread* thread = t_thread;
  if (!comm || !comm->is_inside(dest) || !thread) return false;
  count_inside(thread, call);
  return true;
}

// A receive of what no rank compresses.
inline bool comes_raw(MPI_Comm handle, int source) {
  const Comm* comm = quick_comm(handle);
  return comm && !comm->may_send_frames(source);
}

// A collective among ranks of this node, which it counts. `buffers`: those that MPI is given a copy
// of where it does not reach them (calls/on_host.hpp).
template <typename... Buffers>
bool all_stay(Call call, MPI_Comm handle, Buffers... buffers) {
  const Comm* comm = quick_comm(handle);
  Thread* thread = t_thread;
  if (!comm || !comm->all_inside || !thread || (... || !mpi_reaches(buffers))) return false;
  count_inside(thread, call);
  return true;
}

// No request needs work, and nothing is recorded.
inline bool only_for_mpi() {
  return g_n_records.load(std::memory_order_relaxed) == 0 &&
         g_n_orphans.load(std::memory_order_relaxed) == 0 && !tracing();
}

}  // namespace wirepress
