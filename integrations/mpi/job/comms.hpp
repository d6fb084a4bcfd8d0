// SPDX-License-Identifier: Apache-2.0
// What is known about a communicator: its peers, their nodes, and state that lives as long as it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "job/topology.hpp"

namespace wirepress {

struct Contest;  // choosing/contests.hpp
struct Queue;    // collectives/queues.hpp
struct Shadow;   // collectives/shadow.hpp
struct Stashed;  // messages/stash.hpp
struct Thread;   // messages/thread.hpp

struct Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  std::atomic<int> references{1};
  std::atomic<bool> alive{true};  // false: handle was freed
  bool inter = false;
  bool any_remote = false;      // some peer may send or understand compressed messages
  bool all_world = false;       // every peer is in this job
  int size = 0;                 // number of peers: of the remote group of an intercommunicator
  int rank = 0;                 // mine, in the local group
  std::vector<uint8_t> remote;  // by peer rank: it takes and may send compressed messages
  std::vector<uint8_t> inside;  // by peer rank: it is on my node
  bool all_inside = false;      // every peer is, and no call among them is ours
  std::vector<int> node;        // by peer rank, -1: not of this job
  std::vector<int> world;       // by peer rank: its number in MPI_COMM_WORLD
  int other_nodes = 0;          // that peers are on
  int node_members = 0;         // peers on my node, me included
  bool first_of_node = false;   // of the local group
  std::unique_ptr<Topology> topology;  // once a neighbourhood collective came

  // Messages that a probe had to take from MPI, in order of arrival.
  std::atomic<int> n_stashed{0};
  std::mutex stash_lock;
  std::deque<Stashed*> stash;
  // Shared: looks in the stash and posts a receive; exclusive: moves messages from MPI to the
  // stash. Taken only where threads call MPI at the same time.
  std::shared_mutex posting;

  int collectives = -1;  // -1: not looked at yet; 0: left to MPI; 1: compressed
  Shadow* shadow = nullptr;
  Queue* queue = nullptr;           // of non-blocking collectives
  std::atomic<uint32_t> traced{0};  // its number in the trace
  int early = 0;                    // collectives that came before it was worth looking at
  std::vector<Contest*> contests;

  bool may_send_frames(int source) const {
    if (source == MPI_ANY_SOURCE) return any_remote;
    return source >= 0 && source < size && remote[static_cast<size_t>(source)];
  }
  bool takes_frames(int dest) const {
    return dest >= 0 && dest < size && remote[static_cast<size_t>(dest)];
  }
  bool is_inside(int dest) const {
    return dest >= 0 && dest < size && inside[static_cast<size_t>(dest)];
  }
};

bool prepare_comms();
void retain(Comm* comm);
void release(Comm* comm);
// Before the communicator itself is freed; collective as that is.
void forget_comm(MPI_Comm comm);
// Calls the error handler of the communicator, or the world's where the communicator is freed.
// Returns `error`.
int raise(Comm* comm, int error);

extern std::atomic<uint64_t> g_comm_epoch;  // advances when a communicator is freed
// The same while the job is on, nothing is recorded and no orphan waits; else no thread's.
extern std::atomic<uint64_t> g_quick_epoch;
void update_quick_epoch();  // after one of these changed

// The communicator that a thread used last.
struct LastComm {
  MPI_Comm handle{};
  uint64_t epoch = UINT64_MAX;
  Comm* comm = nullptr;
  Thread* inside = nullptr;  // the thread itself, where the communicator is all_inside
};
extern constinit thread_local LastComm t_last_comm;

Comm* find_comm_slow(MPI_Comm comm);
// nullptr: not a communicator; MPI itself is to say so. Valid as long as the caller may use `comm`.
inline Comm* find_comm(MPI_Comm comm) {
  const LastComm& last = t_last_comm;
  if (last.handle == comm && last.epoch == g_comm_epoch.load(std::memory_order_acquire)) {
    return last.comm;
  }
  return find_comm_slow(comm);
}

}  // namespace wirepress
