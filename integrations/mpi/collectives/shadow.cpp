// SPDX-License-Identifier: Apache-2.0
#include "collectives/shadow.hpp"

#include <atomic>

#include "job/job.hpp"
#include "messages/thread.hpp"

namespace wirepress {
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
bool provide(Shadow* shadow, bool made) {
  // Elements of up to 32 bytes, and alignment, beside it.
  const size_t gathered = job().deterministic && shadow->node_rank == 0
                              ? gathered_size(*shadow) * static_cast<size_t>(shadow->node_size)
                              : 0;
  shadow->provided = prepare_spares();
  int ready = made && shadow->provided && shadow->room.reserve(kRoom) &&
              (gathered == 0 || shadow->gathered.reserve(gathered));
  if (!ready) ++self_thread().events.no_memory;
  const int error = PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, shadow->all);
  return error == MPI_SUCCESS && ready;
}

// What is called for the user's communicator without the user: errors are not for its handler.
class Quiet {
 public:
  explicit Quiet(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_get_errhandler(comm, &before_);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~Quiet() {
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

// MPICH has some 2,000 communicators, of which each of these takes three.
constexpr int kMostShadows = 128;
std::atomic<int> g_n_shadows{0};

// Collective. Makes shadow->all; false, on all members: one has too many.
bool make_whole(const Comm& comm, Shadow* shadow) {
  const Quiet quiet(comm.handle);
  int few = g_n_shadows.load(std::memory_order_relaxed) <= kMostShadows;  // with this
  if (!few) {
    complain("collectives of a communicator are left to MPI: too many have some of their own");
  }
  if (PMPI_Allreduce(MPI_IN_PLACE, &few, 1, MPI_INT, MPI_MIN, comm.handle) != MPI_SUCCESS || !few) {
    return false;
  }
  // Not a duplicate: that would run the user's attribute callbacks.
  if (PMPI_Comm_split(comm.handle, 0, comm.rank, &shadow->all) != MPI_SUCCESS) return false;
  PMPI_Comm_set_errhandler(shadow->all, MPI_ERRORS_RETURN);
  return true;
}

}  // namespace

void free_parts(Shadow* shadow) {
  if (shadow->lane != MPI_COMM_NULL) PMPI_Comm_free(&shadow->lane);
  if (shadow->node != MPI_COMM_NULL) PMPI_Comm_free(&shadow->node);
  if (shadow->all != MPI_COMM_NULL) PMPI_Comm_free(&shadow->all);
}

Shadow::Shadow() { g_n_shadows.fetch_add(1, std::memory_order_relaxed); }

Shadow::~Shadow() {
  g_n_shadows.fetch_sub(1, std::memory_order_relaxed);
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
  if (!make_whole(*comm, shadow)) {
    delete shadow;
    return nullptr;
  }
  // A communicator that returns errors, as these do.
  const bool made =
      PMPI_Comm_split(shadow->all, shadow->my_node, comm->rank, &shadow->node) == MPI_SUCCESS &&
      PMPI_Comm_split(shadow->all, lane, shadow->my_node, &shadow->lane) == MPI_SUCCESS;
  if (!provide(shadow, made)) {
    free_parts(shadow);
    delete shadow;
    return nullptr;
  }
  comm->shadow = shadow;
  comm->collectives = 1;
  return shadow;
}

}  // namespace wirepress
