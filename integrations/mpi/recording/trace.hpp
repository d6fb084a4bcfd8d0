// SPDX-License-Identifier: Apache-2.0
// Recording what the program calls (spec/trace.md). WPR_TRACE stands in front of the work of every
// exported function: one branch where nothing is recorded.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>

#include "job/comms.hpp"
#include "recording/calls.hpp"
#include "recording/trace_file.hpp"

namespace wirepress {

extern std::atomic<bool> g_tracing;
inline bool tracing() { return __builtin_expect(g_tracing.load(std::memory_order_relaxed), 0); }

// What is to be recorded when a request completes.
struct TraceRequest {
  uint64_t number = 0;
  bool receives = false, persistent = false, active = true;
  std::unique_ptr<TraceRecord> started;  // of a persistent one: what each start records
  const void* payload = nullptr;         // of a persistent send: what each start may be sampled of
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Calls of this thread are not the program's.
void never_trace_this_thread();

// One call of the program. What it is goes in before run().
class Tracing {
 public:
  Tracing(Call call, MPI_Comm handle);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  template <typename Body>
  int run(Body body) {
    if (!outermost_) return body();
    record_.begin = trace_stamp();
    const int error = body();
    record_.end = trace_stamp();
    finish(error);
    return error;
  }

  // ---- messages. `status` is replaced where the program wants none.
  Tracing& sends(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag);
  Tracing& receives(MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Status** status);
  Tracing& also_receives(MPI_Count count, MPI_Datatype type, int source, int tag,
                         MPI_Status** status);
  Tracing& matched(MPI_Message* message, MPI_Count count, MPI_Datatype type, MPI_Status** status);
  Tracing& probes(int source, int tag, int* flag, MPI_Message* message, MPI_Status** status);
  // The call makes a request; `receives` says what completes it.
  Tracing& starts(MPI_Request* request, bool receives = false, bool persistent = false);

  // ---- requests
  Tracing& completes(int n, MPI_Request* requests, MPI_Status** statuses, bool array);
  Tracing& when(int* flag) { return flag_ = flag, polls(); }
  Tracing& one_of(int* index) { return index_ = index, *this; }
  Tracing& some_of(int* n_done, int* indices) { return n_done_ = n_done, index_ = indices, *this; }
  Tracing& restarts(int n, MPI_Request* requests);
  Tracing& frees(MPI_Request* request);
  // A call that may find nothing; only one that finds something is recorded.
  Tracing& polls() { return poll_ = true, *this; }

  // ---- collectives, with the arguments of MPI. NC: counts of all members, A: displacements.
  Tracing& barrier(MPI_Comm) { return *this; }
  Tracing& bcast(const void* buffer, MPI_Count n, MPI_Datatype type, int root, MPI_Comm);
  Tracing& allgather(const void* from, MPI_Count n, MPI_Datatype type, const void* to, MPI_Count m,
                     MPI_Datatype to_type, MPI_Comm);
  Tracing& alltoall(const void* from, MPI_Count n, MPI_Datatype type, const void* to, MPI_Count m,
                    MPI_Datatype to_type, MPI_Comm);
  Tracing& gather(const void* from, MPI_Count n, MPI_Datatype type, const void* to, MPI_Count m,
                  MPI_Datatype to_type, int root, MPI_Comm);
  Tracing& scatter(const void* from, MPI_Count n, MPI_Datatype type, const void* to, MPI_Count m,
                   MPI_Datatype to_type, int root, MPI_Comm);
  Tracing& allreduce(const void* from, const void* to, MPI_Count n, MPI_Datatype type, MPI_Op op,
                     MPI_Comm);
  Tracing& reduce(const void* from, const void* to, MPI_Count n, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm);
  template <typename NC, typename A>
  Tracing& allgatherv(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                      const NC* counts, const A*, MPI_Datatype to_type, MPI_Comm handle) {
    return gathers(from, n, type, to, outermost_ ? sum(counts) : 0, mine(counts), to_type, handle);
  }
  template <typename NC, typename A>
  Tracing& gatherv(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                   const NC* counts, const A*, MPI_Datatype to_type, int root, MPI_Comm handle) {
    const bool here = is_root(root);
    gathers(from, n, type, to, here ? sum(counts) : 0, here ? mine(counts) : 0, to_type, handle);
    return rooted(root);
  }
  template <typename NC, typename A>
  Tracing& scatterv(const void* from, const NC* counts, const A*, MPI_Datatype type, const void* to,
                    MPI_Count m, MPI_Datatype to_type, int root, MPI_Comm) {
    return scatters(from, is_root(root) ? sum(counts) : 0, type, to, m, to_type, root);
  }
  template <typename NC, typename A>
  Tracing& alltoallv(const void* from, const NC* counts, const A*, MPI_Datatype type,
                     const void* to, const NC* to_counts, const A*, MPI_Datatype to_type,
                     MPI_Comm) {
    if (!outermost_ || !comm_) return *this;
    const bool in_place = from == MPI_IN_PLACE;
    const MPI_Count total = sum(to_counts);
    return moves(from, to, in_place ? total : sum(counts), in_place ? to_type : type, total,
                 to_type);
  }
  template <typename NC, typename A>
  Tracing& alltoallw(const void* from, const NC* counts, const A*, const MPI_Datatype* types,
                     const void*, const NC* to_counts, const A*, const MPI_Datatype* to_types,
                     MPI_Comm) {
    if (!outermost_ || !comm_ || is_of_neighbors(call_)) return unknown();
    record_.received = sum_bytes(to_counts, to_types);
    record_.sent = from == MPI_IN_PLACE ? record_.received : sum_bytes(counts, types);
    if (from == MPI_IN_PLACE) record_.flags |= kTraceInPlace;
    return *this;
  }
  template <typename NC>
  Tracing& reduce_scatter(const void* from, const void* to, const NC* counts, MPI_Datatype type,
                          MPI_Op op, MPI_Comm) {
    if (!outermost_ || !comm_) return *this;
    return reduces(from, to, sum(counts), mine(counts), type, op);
  }

 private:
  bool is_root(int root) const;
  Tracing& rooted(int root);
  Tracing& unknown();
  Tracing& gathers(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                   MPI_Count total, MPI_Count own, MPI_Datatype to_type, MPI_Comm);
  Tracing& scatters(const void* from, MPI_Count total, MPI_Datatype type, const void* to,
                    MPI_Count m, MPI_Datatype to_type, int root);
  Tracing& moves(const void* from, const void* to, MPI_Count n, MPI_Datatype type, MPI_Count m,
                 MPI_Datatype to_type);
  Tracing& reduces(const void* from, const void* to, MPI_Count n, MPI_Count m, MPI_Datatype type,
                   MPI_Op op);
  uint64_t bytes(MPI_Count count, MPI_Datatype type);
  MPI_Count others() const;  // that a member's calls name: of the other group, or its own

  template <typename NC>
  MPI_Count sum(const NC* counts) const {
    MPI_Count total = 0;
    const MPI_Count n = counts && !is_of_neighbors(call_) ? others() : 0;
    for (MPI_Count i = 0; i < n; ++i) total += counts[i];
    return total;
  }
  template <typename NC>
  MPI_Count mine(const NC* counts) const {
    return counts && comm_ && !comm_->inter && !is_of_neighbors(call_) ? counts[comm_->rank] : 0;
  }
  template <typename NC>
  uint64_t sum_bytes(const NC* counts, const MPI_Datatype* types) {
    uint64_t total = 0;
    const MPI_Count n = counts && types ? others() : 0;
    for (MPI_Count i = 0; i < n; ++i) total += counts[i] > 0 ? bytes(counts[i], types[i]) : 0;
    return total;
  }

  void finish(int error);
  bool found_nothing() const;
  void finish_one();
  void finish_array();
  void put_back(int error);
  void start_again(int error);
  void keep_made();
  void complete(int i, const MPI_Status* status, TraceRecord* record);
  void look_at(const MPI_Status* status, TraceRecord* record) const;
  TraceRequest* taken(int i) { return more_ ? &more_[static_cast<size_t>(i)] : &few_[i]; }
  MPI_Request& handle(int i) {
    return more_handles_ ? more_handles_[static_cast<size_t>(i)] : few_handles_[i];
  }

  static constexpr int kInline = 4;
  const bool outermost_;
  const Call call_;
  Comm* comm_ = nullptr;
  TraceRecord record_, second_;
  bool has_second_ = false, receives_ = false, poll_ = false;
  MPI_Status own_{}, *status_ = nullptr, *second_status_ = nullptr;
  std::unique_ptr<MPI_Status[]> own_statuses_;
  int *flag_ = nullptr, *index_ = nullptr, *n_done_ = nullptr;
  MPI_Request* made_ = nullptr;
  bool made_receives_ = false, made_persistent_ = false;
  const void* payload_ = nullptr;  // of a persistent send that is made
  MPI_Datatype payload_type_ = MPI_DATATYPE_NULL;
  MPI_Message* message_ = nullptr;
  bool takes_message_ = false;
  int n_requests_ = -1, n_taken_ = 0;
  bool array_ = false, starts_again_ = false;
  MPI_Request* requests_ = nullptr;
  TraceRequest few_[kInline];
  MPI_Request few_handles_[kInline];
  std::unique_ptr<TraceRequest[]> more_;
  std::unique_ptr<MPI_Request[]> more_handles_;
};

// A call that is recorded has a function of its own, so that the exported one needs no stack frame.
template <typename Body>
[[gnu::noinline, gnu::cold]] int run_apart(Body body) {
  return body();
}

}  // namespace wirepress

// Ends an exported function: returns what the last arguments say, recorded if that is wanted.
#define WPR_TRACE(call, comm, describe, ...)                  \
  if (tracing()) {                                            \
    return run_apart([=]() mutable -> int {                   \
      Tracing trace(call, comm);                              \
      trace.describe;                                         \
      return trace.run([&]() -> int { return __VA_ARGS__; }); \
    });                                                       \
  }                                                           \
  return __VA_ARGS__
