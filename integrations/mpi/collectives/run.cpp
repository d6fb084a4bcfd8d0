// SPDX-License-Identifier: Apache-2.0
#include "collectives/run.hpp"

#include <algorithm>

#include "choosing/links.hpp"
#include "collectives/operation.hpp"
#include "messages/frames.hpp"
#include "messages/requests.hpp"

namespace wirepress {
namespace {

// Communicators that live for a call or two are not worth dividing: the first calls are MPI's, ...
constexpr int kEarly = 2;
// ... unless one such call takes so many seconds of the link.
constexpr double kWorthDividing = 20e-3;

bool is_early(Comm* comm) {
  return job().contest && comm->collectives < 0 && comm->early++ < kEarly;
}

}  // namespace

Comm* collective_comm(MPI_Comm handle) {
  if (inert() || g_mode.load(std::memory_order_relaxed) != kOn) return nullptr;
  return find_comm(handle);
}

size_t least_size(Call call) {
  const bool blocks =
      call == kAlltoall || call == kGather || call == kScatter || is_of_neighbors(call);
  return std::max(blocks ? job().block_threshold : job().threshold, kMinWire);
}

Way way_of(Call call, Comm* comm, size_t total, bool always) {
  if (comm->collectives == 0 || !(comm->any_remote || always)) return {};
  if (!always && total < least_size(call)) return {nullptr, kSmall};
  const double seconds = static_cast<double>(total) / std::max(link_rate(kLeadersLink), 1.0);
  if (!always && seconds < kWorthDividing && is_early(comm)) return {nullptr, kLearning};
  Shadow* shadow = find_shadow(comm);
  if (!shadow || always || !is_reduction(call)) return {shadow};
  const bool small = total / static_cast<size_t>(shadow->n_nodes) < kLeastSegment;
  return {small ? nullptr : shadow, kSmall};
}

Way way_of_pairs(Comm* comm) {
  if (comm->inter || comm->collectives == 0 || !comm->any_remote) return {};
  if (is_early(comm)) return {nullptr, kLearning};
  return {find_shadow(comm)};
}

}  // namespace wirepress
