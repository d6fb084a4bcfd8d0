// SPDX-License-Identifier: Apache-2.0
// What is known about a communicator: which peers take compressed messages, and its nodes.
// Kept in an attribute, so that freeing the communicator ends it, and cached by each thread.
#include <algorithm>
#include <numeric>

#include "job/interposer.hpp"

namespace wirepress {

std::atomic<uint64_t> g_comm_epoch{0};

namespace {

int g_key = MPI_KEYVAL_INVALID;
std::mutex& table_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}

int forget(MPI_Comm, int, void* value, void*) {
  Comm* comm = static_cast<Comm*>(value);
  comm->alive.store(false, std::memory_order_release);
  g_comm_epoch.fetch_add(1, std::memory_order_acq_rel);
  release(comm);
  return MPI_SUCCESS;
}

void count_nodes(Comm* comm) {
  const int own = job().node[static_cast<size_t>(job().rank)];
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
    comm->remote[i] = comm->node[i] != node[static_cast<size_t>(job().rank)];
    comm->any_remote |= comm->remote[i] != 0;
  }
  count_nodes(comm);
  if (comes_from_session(comm->handle)) {
    comm->remote.assign(n, 0);
    comm->any_remote = comm->all_world = false;
  }
  return true;
}

void free_parts(Shadow* shadow) {
  if (shadow->lane != MPI_COMM_NULL) PMPI_Comm_free(&shadow->lane);
  if (shadow->node != MPI_COMM_NULL) PMPI_Comm_free(&shadow->node);
  if (shadow->all != MPI_COMM_NULL) PMPI_Comm_free(&shadow->all);
}

}  // namespace

bool prepare_comms() {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &g_key, nullptr) == MPI_SUCCESS;
}

void retain(Comm* comm) { comm->references.fetch_add(1, std::memory_order_relaxed); }

void release(Comm* comm) {
  if (comm->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (Stashed* stashed : comm->stash) delete stashed;
  free_contests(comm);
  delete comm->shadow;
  delete comm;
}

Comm* find_comm_slow(MPI_Comm handle) {
  if (handle == MPI_COMM_NULL) return nullptr;
  Thread& thread = self_thread();
  const uint64_t epoch = g_comm_epoch.load(std::memory_order_acquire);
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(handle, g_key, &value, &found) != MPI_SUCCESS) return nullptr;
  Comm* comm = static_cast<Comm*>(value);
  if (!found) {
    // Two threads may meet here; a lock across these calls is harmless, they wait for nobody.
    std::lock_guard hold(table_lock());
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
  thread.cached = handle;
  thread.cached_comm = comm;
  thread.cached_epoch = epoch;
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

namespace {

// Everything follows from comm->node, which is the same on every member.
Shadow* plan(const Comm& comm) {
  auto* shadow = new Shadow;
  const auto n = static_cast<size_t>(comm.size);
  std::vector<int> names;  // of nodes, by first rank
  shadow->node_of.resize(n);
  shadow->rank_in_node.resize(n);
  std::vector<std::vector<int>> ranks;
  for (size_t i = 0; i < n; ++i) {
    const auto at =
        static_cast<size_t>(std::find(names.begin(), names.end(), comm.node[i]) - names.begin());
    if (at == names.size()) {
      names.push_back(comm.node[i]);
      ranks.emplace_back();
    }
    shadow->node_of[i] = static_cast<int>(at);
    shadow->rank_in_node[i] = static_cast<int>(ranks[at].size());
    ranks[at].push_back(static_cast<int>(i));
  }
  shadow->n_nodes = static_cast<int>(names.size());
  for (const std::vector<int>& node : ranks) {
    shadow->first.push_back(static_cast<int>(shadow->members.size()));
    shadow->members.insert(shadow->members.end(), node.begin(), node.end());
  }
  shadow->first.push_back(comm.size);
  shadow->ordered = std::is_sorted(shadow->members.begin(), shadow->members.end());
  const auto size_of = [&](size_t i) { return shadow->first[i + 1] - shadow->first[i]; };
  shadow->even = true;
  for (size_t i = 1; i + 1 < shadow->first.size(); ++i) shadow->even &= size_of(i) == size_of(0);
  const auto me = static_cast<size_t>(comm.rank);
  shadow->my_node = shadow->node_of[me];
  shadow->node_rank = shadow->rank_in_node[me];
  shadow->node_size = static_cast<int>(ranks[static_cast<size_t>(shadow->my_node)].size());
  return shadow;
}

// Collective. What a call cannot go on without is here on all members, or none goes this way.
bool provide(Shadow* shadow) {
  // Elements of up to 32 bytes, and alignment, beside it.
  const size_t gathered = job().deterministic && shadow->node_rank == 0
                              ? gathered_piece(*shadow) * static_cast<size_t>(shadow->node_size)
                              : 0;
  shadow->provided = prepare_spares();
  int ready = shadow->provided && shadow->room.reserve(kRoom) &&
              (gathered == 0 || shadow->gathered.reserve(gathered));
  if (!ready) ++self_thread().events.no_memory;
  const int error = PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, shadow->all);
  return error == MPI_SUCCESS && ready;
}

}  // namespace

Shadow::~Shadow() {
  if (provided) drop_spares();
}

Shadow* find_shadow(Comm* comm) {
  if (comm->collectives >= 0) return comm->shadow;
  comm->collectives = 0;
  if (comm->inter || !comm->all_world || !job().collectives || comm->size < 2) return nullptr;
  Shadow* shadow = plan(*comm);
  if (shadow->n_nodes < 2 && !job().deterministic) {
    delete shadow;
    return nullptr;
  }
  const bool has_peers = shadow->even || shadow->node_rank == 0;
  const int lane = has_peers ? shadow->node_rank : MPI_UNDEFINED;
  // Not a duplicate: that would run the user's attribute callbacks.
  if (PMPI_Comm_split(comm->handle, 0, comm->rank, &shadow->all) != MPI_SUCCESS ||
      PMPI_Comm_split(comm->handle, shadow->my_node, comm->rank, &shadow->node) != MPI_SUCCESS ||
      PMPI_Comm_split(comm->handle, lane, shadow->my_node, &shadow->lane) != MPI_SUCCESS) {
    delete shadow;
    return nullptr;
  }
  PMPI_Comm_set_errhandler(shadow->all, MPI_ERRORS_RETURN);
  PMPI_Comm_set_errhandler(shadow->node, MPI_ERRORS_RETURN);
  if (has_peers) PMPI_Comm_set_errhandler(shadow->lane, MPI_ERRORS_RETURN);
  if (!provide(shadow)) {
    free_parts(shadow);
    delete shadow;
    return nullptr;
  }
  comm->shadow = shadow;
  comm->collectives = 1;
  return shadow;
}

}  // namespace wirepress
