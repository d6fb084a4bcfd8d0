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

// Every condition costs: the first functions are what fits before the call of MPI without a stack
// frame. The others, which the slow way asks, know more.

// What this thread counts, if the communicator is the one that it used last, has all its ranks on
// this node, and nothing else decides what becomes of the call: the job is on, nothing is recorded,
// no orphan is looked after.
inline Thread* one_look(MPI_Comm handle) {
  const LastComm& last = t_last_comm;
  return last.handle == handle && last.epoch == g_quick_epoch.load(std::memory_order_acquire)
             ? last.inside
             : nullptr;
}

inline bool count_inside(Thread* thread, Call call) {
  if (!thread) return false;
  ++thread->inside[call];
  return true;
}

// A collective whose buffers go to MPI wherever they lie.
inline bool surely_stays(Call call, MPI_Comm handle) {
  return count_inside(one_look(handle), call);
}
// One whose buffers may have to be copied (calls/on_host.hpp).
inline bool surely_stays_on_cores(Call call, MPI_Comm handle) {
  return !any_devices() && surely_stays(call, handle);
}
// A message; MPI_PROC_NULL is less than 0.
inline bool surely_stays(Call call, MPI_Comm handle, int dest) {
  return dest >= 0 && surely_stays(call, handle);
}
inline bool surely_comes_raw(MPI_Comm handle) { return one_look(handle) != nullptr; }

// ---- the slow way ----

// The communicator if it is the one that this thread used last, and nothing but it decides.
inline const Comm* quick_comm(MPI_Comm handle) {
  const LastComm& last = t_last_comm;
  return last.handle == handle && last.epoch == g_quick_epoch.load(std::memory_order_acquire)
             ? last.comm
             : nullptr;
}

// A message to a rank of this node, which it counts.
inline bool stays(Call call, MPI_Comm handle, int dest) {
  const Comm* comm = quick_comm(handle);
  return comm && comm->is_inside(dest) && count_inside(t_thread, call);
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
  return comm && comm->all_inside && (... && mpi_reaches(buffers)) && count_inside(t_thread, call);
}

// No request needs work, and nothing is recorded.
inline bool only_for_mpi() {
  return g_n_records.load(std::memory_order_relaxed) == 0 &&
         g_n_orphans.load(std::memory_order_relaxed) == 0 && !tracing();
}

}  // namespace wirepress
