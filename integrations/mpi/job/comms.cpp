// SPDX-License-Identifier: Apache-2.0
// What is known about a communicator: which peers take compressed messages, and its nodes.
// Kept in an attribute, so that freeing the communicator ends it, and cached by each thread.
#include "job/comms.hpp"

#include <algorithm>
#include <numeric>

#include "choosing/contests.hpp"
#include "collectives/queues.hpp"
#include "collectives/shadow.hpp"
#include "job/job.hpp"
#include "job/sessions.hpp"
#include "messages/requests.hpp"
#include "messages/stash.hpp"
#include "messages/thread.hpp"
#include "recording/trace.hpp"

namespace wirepress {

namespace {
constexpr uint64_t kNobodys = UINT64_MAX - 1;  // LastComm begins with another
}  // namespace

std::atomic<uint64_t> g_comm_epoch{0};
std::atomic<uint64_t> g_quick_epoch{kNobodys};
constinit thread_local LastComm t_last_comm;

namespace {

int g_key = MPI_KEYVAL_INVALID;

int forget(MPI_Comm, int, void* value, void*) {
  Comm* comm = static_cast<Comm*>(value);
  comm->alive.store(false, std::memory_order_release);
  g_comm_epoch.fetch_add(1, std::memory_order_acq_rel);
  update_quick_epoch();
  release(comm);
  return MPI_SUCCESS;
}

void count_nodes(Comm* comm) {
  const int own = own_node();
  std::vector<int> others;
  int first = comm->size;
  for (int i = 0; i < comm->size; ++i) {
    const int node = comm->node[static_cast<size_t>(i)];
    if (node == own) {
      ++comm->node_members;
      first = std::min(first, i);
    } else if (node >= 0) {
      others.push_back(node);
    }
  }
  std::sort(others.begin(), others.end());
  const auto end = std::unique(others.begin(), others.end());
  comm->other_nodes = static_cast<int>(end - others.begin());
  comm->first_of_node = !comm->inter && first == comm->rank;
}

bool learn_peers(Comm* comm) {
  int inter;
  PMPI_Comm_test_inter(comm->handle, &inter);
  comm->inter = inter;
  PMPI_Comm_rank(comm->handle, &comm->rank);
  MPI_Group world, group;
  const int failed =
      inter ? PMPI_Comm_remote_group(comm->handle, &group) : PMPI_Comm_group(comm->handle, &group);
  if (failed != MPI_SUCCESS || PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return false;
  PMPI_Group_size(group, &comm->size);
  const auto n = static_cast<size_t>(comm->size);
  std::vector<int> here(n), there(n);
  std::iota(here.begin(), here.end(), 0);
  PMPI_Group_translate_ranks(group, comm->size, here.data(), world, there.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);

  const std::vector<int>& node = job().node;
  comm->remote.assign(n, 0);
  comm->inside.assign(n, 0);
  comm->node.assign(n, -1);
  comm->world.assign(n, -1);
  comm->all_world = true;
  for (size_t i = 0; i < n; ++i) {
    const int world_rank = comm->world[i] = there[i];
    if (world_rank == MPI_UNDEFINED) {
      comm->all_world = false;  // a process of another job: nothing is known about it
      continue;
    }
    comm->node[i] = node[static_cast<size_t>(world_rank)];
    comm->remote[i] = comm->node[i] != own_node();
    comm->inside[i] = !comm->remote[i];
    comm->any_remote |= comm->remote[i] != 0;
  }
  count_nodes(comm);
  if (comes_from_session(comm->handle)) {
    comm->remote.assign(n, 0);
    comm->any_remote = comm->all_world = false;
  }
  comm->all_inside = comm->all_world && comm->other_nodes == 0 && !job().deterministic;
  return true;
}

}  // namespace

bool prepare_comms() {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &g_key, nullptr) == MPI_SUCCESS;
}

void update_quick_epoch() {
  static auto* lock = new std::mutex;
  std::lock_guard hold(*lock);
  const bool quick = g_mode.load(std::memory_order_acquire) == kOn && !tracing() &&
                     g_n_orphans.load(std::memory_order_relaxed) == 0;
  g_quick_epoch.store(quick ? g_comm_epoch.load(std::memory_order_acquire) : kNobodys,
                      std::memory_order_release);
}

void retain(Comm* comm) { bump(&comm->references, 1); }

void release(Comm* comm) {
  if (job().multiple) {
    if (comm->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  } else {
    bump(&comm->references, -1);
    if (comm->references.load(std::memory_order_relaxed) > 0) return;
  }
  for (Stashed* stashed : comm->stash) delete stashed;
  free_contests(comm);
  delete comm->shadow;
  delete comm;
}

Comm* find_comm_slow(MPI_Comm handle) {
  if (handle == MPI_COMM_NULL) return nullptr;
  const uint64_t epoch = g_comm_epoch.load(std::memory_order_acquire);
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(handle, g_key, &value, &found) != MPI_SUCCESS) return nullptr;
  Comm* comm = static_cast<Comm*>(value);
  if (!found) {
    // Two threads may meet here; a lock across these calls is harmless, they wait for nobody.
    static auto* lock = new std::mutex;
    std::lock_guard hold(*lock);
    PMPI_Comm_get_attr(handle, g_key, &value, &found);
    comm = static_cast<Comm*>(value);
    if (!found) {
      comm = new Comm;
      comm->handle = handle;
      const bool learned = learn_peers(comm);
      comm->alive.store(true, std::memory_order_release);
      if (!learned || PMPI_Comm_set_attr(handle, g_key, comm) != MPI_SUCCESS) {
        delete comm;
        return nullptr;
      }
    }
  }
  // Another thread's, perhaps: how MPI handed it over is not known to race detectors.
  comm->alive.load(std::memory_order_acquire);
  t_last_comm = {handle, epoch, comm, comm->all_inside ? &self_thread() : nullptr};
  return comm;
}

void forget_comm(MPI_Comm handle) {
  if (handle == MPI_COMM_NULL || handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF) return;
  void* value;
  int found = 0;
  if (PMPI_Comm_get_attr(handle, g_key, &value, &found) != MPI_SUCCESS || !found) return;
  end_queue(static_cast<Comm*>(value));
  if (Shadow* shadow = static_cast<Comm*>(value)->shadow) free_parts(shadow);
}

int raise(Comm* comm, int error) {
  const bool alive = comm && comm->alive.load(std::memory_order_acquire);
  PMPI_Comm_call_errhandler(alive ? comm->handle : MPI_COMM_WORLD, error);
  return error;
}

}  // namespace wirepress
