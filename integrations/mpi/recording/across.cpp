// SPDX-License-Identifier: Apache-2.0
#include "recording/across.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "collectives/shadow.hpp"
#include "job/topology.hpp"
#include "messages/requests.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"

namespace wirepress {
namespace {

// What a start of a persistent collective counts.
struct Start {
  Call call;
  const Comm* comm;
  uint64_t bytes;
};
struct Starts {
  std::mutex lock;
  std::unordered_map<uint64_t, Start> all;  // by the value of the request's handle
  std::atomic<size_t> n{0};
};
Starts& starts() { return the<Starts>(); }

}  // namespace

uint64_t Across::size_of(MPI_Count count, MPI_Datatype type) {
  Type known;
  MPI_Count size;
  if (count <= 0 || type == MPI_DATATYPE_NULL || !look_up(type, &known) ||
      __builtin_mul_overflow(count, known.size, &size)) {
    return 0;
  }
  return static_cast<uint64_t>(size);
}

void Across::allreduce(const void*, const void*, MPI_Count n, MPI_Datatype type, MPI_Op, MPI_Comm) {
  if (comm_->inter) return;
  const uint64_t size = size_of(n, type);
  const auto nodes = static_cast<uint64_t>(comm_->other_nodes) + 1;
  if (is_scan(call_)) {
    const auto next = static_cast<size_t>(comm_->rank) + 1;
    bytes_ = next < static_cast<size_t>(comm_->size) && differs(next) ? size : 0;
  } else if (is_reduce_scatter_block(call_)) {
    bytes_ = to_peers([&](size_t) { return size; }) / members();
  } else {  // every node reduces a part for all, and hands it round
    bytes_ = 2 * size * (nodes - 1) / nodes / members();
  }
}

const std::vector<int>& Across::destinations() const { return topology_of(comm_).destinations; }

Comm* counted_comm(MPI_Comm handle) { return active_comm(handle); }

void count_left(Call call, const Comm* comm, Bypass why, uint64_t bytes) {
  CallStats& counts = stats(call);
  ++counts.messages;
  ++counts.bypass[comm->other_nodes > 0 ? why : comm->all_world ? kSameHost : kNoPeer];
  counts.raw_size += bytes;
  counts.wire_size += bytes;
  counts.modelled_size += bytes;
}

void count_exchange(const Shadow& shadow, size_t size) {
  const auto nodes = static_cast<size_t>(shadow.n_nodes);
  const size_t bytes = 2 * size * (nodes - 1) / nodes / static_cast<size_t>(shadow.node_size);
  stats(kExchange).raw_size += bytes;
  stats(kExchange).wire_size += bytes;
  stats(kExchange).modelled_size += bytes;
}

void count_starts(MPI_Request request, Call call, MPI_Comm handle, uint64_t bytes) {
  Comm* comm = request == MPI_REQUEST_NULL ? nullptr : active_comm(handle);
  if (!comm) return;
  retain(comm);
  std::lock_guard hold(starts().lock);
  starts().all.insert_or_assign(handle_bits(request), Start{call, comm, bytes});
  starts().n.store(starts().all.size(), std::memory_order_relaxed);
}

void count_start(MPI_Request request) {
  if (starts().n.load(std::memory_order_relaxed) == 0 || inert()) return;
  std::lock_guard hold(starts().lock);
  const auto found = starts().all.find(handle_bits(request));
  if (found == starts().all.end()) return;
  const Start& start = found->second;
  count_left(start.call, start.comm, kNonblocking, start.bytes);
}

void forget_starts(MPI_Request request) {
  if (starts().n.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard hold(starts().lock);
  const auto found = starts().all.find(handle_bits(request));
  if (found == starts().all.end()) return;
  release(const_cast<Comm*>(found->second.comm));
  starts().all.erase(found);
  starts().n.store(starts().all.size(), std::memory_order_relaxed);
}

}  // namespace wirepress
