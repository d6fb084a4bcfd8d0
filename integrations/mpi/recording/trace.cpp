// SPDX-License-Identifier: Apache-2.0
// What a call of the program says of itself: the record of a trace. Arguments that MPI may refuse
// are not believed; what cannot be described is flagged.
#include "recording/trace.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "messages/incoming.hpp"
#include "messages/types.hpp"

namespace wirepress {
namespace {

thread_local int t_depth = 0;
// Spent by this thread in calls that found nothing, since one of them found something.
thread_local uint64_t t_polled_ns = 0;

// By the value of a handle, which MPI may use again as soon as it ended: entries are taken out
// before MPI is called.
template <typename Value>
class Handles {
 public:
  void put(uint64_t bits, Value value) {
    Shard& shard = find(bits);
    std::lock_guard hold(shard.lock);
    shard.values.insert_or_assign(bits, std::move(value));
  }
  bool take(uint64_t bits, Value* value) {
    Shard& shard = find(bits);
    std::lock_guard hold(shard.lock);
    const auto found = shard.values.find(bits);
    if (found == shard.values.end()) return false;
    *value = std::move(found->second);
    shard.values.erase(found);
    return true;
  }

 private:
  struct alignas(64) Shard {
    std::mutex lock;
    std::unordered_map<uint64_t, Value> values;
  };
  Shard& find(uint64_t bits) { return shards_[(bits * 0x9E3779B97F4A7C15u) >> 60]; }
  Shard shards_[16];
};

Handles<TraceRequest>& requests() { return the<Handles<TraceRequest>>(); }
// Of matched messages: the number of their communicator.
Handles<uint32_t>& messages() { return the<Handles<uint32_t>>(); }

uint64_t next_request() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

uint8_t op_number(MPI_Op op) {
  const MPI_Op known[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
                          MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
  for (uint8_t i = 0; i < std::size(known); ++i) {
    if (op == known[i]) return static_cast<uint8_t>(i + 1);
  }
  return 255;
}

}  // namespace

std::atomic<bool> g_tracing{false};

void never_trace_this_thread() { ++t_depth; }

Tracing::Tracing(Call call, MPI_Comm handle) : outermost_(t_depth++ == 0), call_(call) {
  if (!outermost_) return;
  record_.call = static_cast<uint8_t>(call);
  if (handle == MPI_COMM_NULL) return;
  comm_ = find_comm(handle);
  if (comm_) record_.comm = trace_comm(comm_);
}

Tracing::~Tracing() { --t_depth; }

// ---- sizes ----

MPI_Count Tracing::others() const { return comm_ ? comm_->size : 0; }

uint64_t Tracing::bytes(MPI_Count count, MPI_Datatype type) {
  Type known;
  MPI_Count total;
  if (count < 0 || type == MPI_DATATYPE_NULL || !look_up(type, &known) ||
      __builtin_mul_overflow(count, known.size, &total)) {
    record_.flags |= kTraceUnknown;
    return 0;
  }
  record_.dtype = static_cast<uint8_t>(known.dtype);
  return static_cast<uint64_t>(total);
}

Tracing& Tracing::unknown() {
  record_.flags |= kTraceUnknown;
  return *this;
}

// ---- messages ----

Tracing& Tracing::sends(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag) {
  if (!outermost_) return *this;
  record_.count = static_cast<uint64_t>(std::max<MPI_Count>(count, 0));
  record_.sent = bytes(count, type);
  record_.peer = dest;
  record_.tag = tag;
  if (!samples_wanted() || dest == MPI_PROC_NULL) return *this;
  if (call_ < kSendInit || call_ > kRsendInit) {
    take_sample(call_, buffer, record_.count, type);
  } else if (Type known; look_up(type, &known) && known.named) {
    // The data come later. A type of the user's own may be freed until then.
    payload_ = buffer;
    payload_type_ = type;
  }
  return *this;
}

Tracing& Tracing::receives(MPI_Count count, MPI_Datatype type, int source, int tag,
                           MPI_Status** status) {
  if (!outermost_) return *this;
  record_.count = static_cast<uint64_t>(std::max<MPI_Count>(count, 0));
  record_.received = bytes(count, type);
  record_.peer = source;
  record_.tag = tag;
  if (!status) return *this;
  receives_ = true;
  if (*status == MPI_STATUS_IGNORE) *status = &own_;
  status_ = *status;
  return *this;
}

Tracing& Tracing::also_receives(MPI_Count count, MPI_Datatype type, int source, int tag,
                                MPI_Status** status) {
  if (!outermost_) return *this;
  has_second_ = true;
  second_ = record_;
  std::swap(record_, second_);
  record_.sent = 0;
  receives(count, type, source, tag, status);
  std::swap(record_, second_);
  second_.flags |= kTraceReceiveHalf;
  receives_ = false;
  second_status_ = status ? status_ : nullptr;
  status_ = nullptr;
  return *this;
}

Tracing& Tracing::matched(MPI_Message* message, MPI_Count count, MPI_Datatype type,
                          MPI_Status** status) {
  if (!outermost_) return *this;
  receives(count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, status);
  if (message) messages().take(handle_bits(*message), &record_.comm);
  return *this;
}

Tracing& Tracing::probes(int source, int tag, int* flag, MPI_Message* message,
                         MPI_Status** status) {
  if (!outermost_) return *this;
  record_.peer = source;
  record_.tag = tag;
  flag_ = flag;
  poll_ = flag != nullptr;
  message_ = message;
  receives_ = true;
  if (*status == MPI_STATUS_IGNORE) *status = &own_;
  status_ = *status;
  return *this;
}

void Tracing::look_at(const MPI_Status* status, TraceRecord* record) const {
  // MPICH's probes leave the bit for "cancelled" as it was: that of a probe says nothing.
  const bool probed = call_ >= kProbe && call_ <= kImprobe;
  int cancelled = 0;
  if (!probed && PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled) {
    record->flags |= kTraceCancelled;
    record->received = 0;
    return;
  }
  record->peer = status->MPI_SOURCE;
  record->tag = status->MPI_TAG;
  record->received = received_size(*status);
}

// ---- requests ----

Tracing& Tracing::starts(MPI_Request* request, bool receives, bool persistent) {
  made_ = request;
  made_receives_ = receives;
  made_persistent_ = persistent;
  return *this;
}

Tracing& Tracing::completes(int n, MPI_Request* requests, MPI_Status** statuses, bool array) {
  if (!outermost_ || n < 0 || (n > 0 && !requests)) return *this;
  n_requests_ = n;
  requests_ = requests;
  array_ = array;
  if (n > kInline) {
    more_.reset(new TraceRequest[static_cast<size_t>(n)]);
    more_handles_.reset(new MPI_Request[static_cast<size_t>(n)]);
  }
  bool receives = false;
  for (int i = 0; i < n; ++i) {
    handle(i) = requests[i];
    if (requests[i] == MPI_REQUEST_NULL) continue;
    if (!wirepress::requests().take(handle_bits(requests[i]), taken(i))) continue;
    ++n_taken_;
    receives |= taken(i)->receives;
  }
  if (!statuses) return *this;
  const bool ignored = array ? *statuses == MPI_STATUSES_IGNORE : *statuses == MPI_STATUS_IGNORE;
  if (ignored && receives) {
    if (array && n > 1) {
      own_statuses_.reset(new MPI_Status[static_cast<size_t>(n)]());
      *statuses = own_statuses_.get();
    } else {
      *statuses = &own_;
    }
    own_.MPI_ERROR = MPI_SUCCESS;
  }
  status_ = ignored && !receives ? nullptr : *statuses;
  return *this;
}

void Tracing::complete(int i, const MPI_Status* status, TraceRecord* record) {
  TraceRequest* request = taken(i);
  if (request->number == 0) return;
  record->request = request->number;
  if (request->receives && status) look_at(status, record);
  if (request->persistent) {
    request->active = false;
    return;
  }
  request->number = 0;
}

// Requests that are still waited for; after an error MPI says by the handles which these are.
void Tracing::put_back(int error) {
  for (int i = 0; i < n_requests_; ++i) {
    if (taken(i)->number == 0 || (error && requests_[i] == MPI_REQUEST_NULL)) continue;
    requests().put(handle_bits(handle(i)), std::move(*taken(i)));
  }
}

// One request: the call's own record is its completion.
void Tracing::finish_one() {
  const int i = index_ ? *index_ : 0;
  if (i >= 0 && i < n_requests_ && taken(i)->active) complete(i, status_, &record_);
  write_record(record_);
}

void Tracing::finish_array() {
  record_.count = static_cast<uint64_t>(n_requests_);
  write_record(record_);
  const int n_done = n_done_ ? *n_done_ : n_requests_;  // MPI_UNDEFINED is negative
  for (int k = 0; k < n_done; ++k) {
    const int i = index_ ? index_[k] : k;
    if (i < 0 || i >= n_requests_ || taken(i)->number == 0 || !taken(i)->active) continue;
    TraceRecord done;
    done.call = kCompletion;
    done.begin = done.end = record_.end;
    complete(i, status_ ? &status_[k] : nullptr, &done);
    write_record(done);
  }
}

Tracing& Tracing::restarts(int n, MPI_Request* requests) {
  completes(n, requests, nullptr, true);
  starts_again_ = true;
  for (int i = 0; i < n_requests_; ++i) {
    const TraceRequest& request = *taken(i);
    if (!request.payload) continue;
    const TraceRecord& started = *request.started;
    take_sample(static_cast<Call>(started.call), request.payload, started.count, request.type);
  }
  return *this;
}

Tracing& Tracing::frees(MPI_Request* request) {
  TraceRequest forgotten;
  if (!outermost_ || !request || *request == MPI_REQUEST_NULL) return *this;
  if (requests().take(handle_bits(*request), &forgotten)) record_.request = forgotten.number;
  return *this;
}

// ---- after the call ----

bool Tracing::found_nothing() const {
  if (!poll_) return false;
  return flag_ ? !*flag_ : !n_done_ || *n_done_ <= 0;
}

void Tracing::start_again(int error) {
  for (int i = 0; i < n_requests_; ++i) {
    TraceRequest* request = taken(i);
    if (!request->started || error) continue;
    request->number = next_request();
    request->active = true;
    TraceRecord started = *request->started;
    started.begin = record_.begin;
    started.end = record_.end;
    started.request = request->number;
    started.flags |= kTraceStarted;
    write_record(started);
  }
}

// Before others can complete it: the request's number.
void Tracing::keep_made() {
  TraceRequest request;
  request.number = record_.request = second_.request = next_request();
  request.receives = made_receives_;
  if (made_persistent_) {
    request.persistent = true;
    request.active = false;
    request.started = std::make_unique<TraceRecord>(record_);
    request.payload = payload_;
    request.type = payload_type_;
  }
  requests().put(handle_bits(*made_), std::move(request));
}

void Tracing::finish(int error) {
  if (error) record_.flags |= kTraceFailed;
  if (poll_) t_polled_ns += record_.end - record_.begin;
  if (found_nothing()) return put_back(error);
  if (poll_) {
    record_.sent = t_polled_ns - (record_.end - record_.begin);
    t_polled_ns = 0;
  }
  if (n_requests_ >= 0) {
    if (starts_again_) {
      start_again(error);
    } else if (error) {
      write_record(record_);
    } else if (array_) {
      finish_array();
    } else {
      finish_one();
    }
    return put_back(error);
  }
  if (receives_ && status_ && !error) look_at(status_, &record_);
  if (message_ && !error && *message_ != MPI_MESSAGE_NULL) {
    messages().put(handle_bits(*message_), record_.comm);
  }
  if (made_ && !error && *made_ != MPI_REQUEST_NULL) keep_made();
  write_record(record_);
  if (!has_second_) return;
  second_.begin = record_.begin;
  second_.end = record_.end;
  second_.comm = record_.comm;
  if (error) second_.flags |= kTraceFailed;
  if (second_status_ && !error) look_at(second_status_, &second_);
  write_record(second_);
}

// ---- collectives ----

bool Tracing::is_root(int root) const {
  if (!outermost_ || !comm_) return false;
  return comm_->inter ? root == MPI_ROOT : root == comm_->rank;
}

Tracing& Tracing::rooted(int root) {
  record_.peer = root;
  return *this;
}

// n elements go and m come.
Tracing& Tracing::moves(const void* from, const void* to, MPI_Count n, MPI_Datatype type,
                        MPI_Count m, MPI_Datatype to_type) {
  const bool in_place = from == MPI_IN_PLACE;
  if (in_place) record_.flags |= kTraceInPlace;
  record_.count = static_cast<uint64_t>(std::max<MPI_Count>(n, 0));
  if (m > 0) record_.received = bytes(m, to_type);
  if (n > 0) record_.sent = bytes(n, type);
  if (is_of_neighbors(call_)) record_.flags |= n > 0 ? kTracePerNeighbor : kTraceUnknown;
  if (samples_wanted() && n > 0) take_sample(call_, in_place ? to : from, record_.count, type);
  return *this;
}

Tracing& Tracing::bcast(const void* buffer, MPI_Count n, MPI_Datatype type, int root, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  if (is_root(root)) {
    moves(buffer, nullptr, n, type, 0, type);
  } else if (!comm_->inter || root != MPI_PROC_NULL) {
    moves(nullptr, buffer, 0, type, n, type);
    record_.count = static_cast<uint64_t>(std::max<MPI_Count>(n, 0));
  }
  return rooted(root);
}

Tracing& Tracing::allgather(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                            MPI_Count m, MPI_Datatype to_type, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  if (from == MPI_IN_PLACE) n = m, type = to_type;
  return moves(from, to, n, type, is_of_neighbors(call_) ? m : m * others(), to_type);
}

Tracing& Tracing::alltoall(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                           MPI_Count m, MPI_Datatype to_type, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  if (from == MPI_IN_PLACE) n = m, type = to_type;
  const MPI_Count k = is_of_neighbors(call_) ? 1 : others();
  return moves(from, to, n * k, type, m * k, to_type);
}

Tracing& Tracing::gathers(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                          MPI_Count total, MPI_Count own, MPI_Datatype to_type, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  if (from == MPI_IN_PLACE) n = own, type = to_type;
  return moves(from, to, n, type, total, to_type);
}

Tracing& Tracing::gather(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                         MPI_Count m, MPI_Datatype to_type, int root, MPI_Comm handle) {
  if (!outermost_ || !comm_) return *this;
  const bool here = is_root(root);
  if (comm_->inter && (here || root == MPI_PROC_NULL)) n = 0;
  gathers(from, n, type, to, here ? m * others() : 0, here ? m : 0, to_type, handle);
  return rooted(root);
}

Tracing& Tracing::scatters(const void* from, MPI_Count total, MPI_Datatype type, const void* to,
                           MPI_Count m, MPI_Datatype to_type, int root) {
  if (!outermost_ || !comm_) return *this;
  if (to == MPI_IN_PLACE) m = 0, record_.flags |= kTraceInPlace;
  if (comm_->inter && (is_root(root) || root == MPI_PROC_NULL)) m = 0;
  moves(from, to, total, type, m, to_type);
  return rooted(root);
}

Tracing& Tracing::scatter(const void* from, MPI_Count n, MPI_Datatype type, const void* to,
                          MPI_Count m, MPI_Datatype to_type, int root, MPI_Comm) {
  return scatters(from, is_root(root) ? n * others() : 0, type, to, m, to_type, root);
}

Tracing& Tracing::reduces(const void* from, const void* to, MPI_Count n, MPI_Count m,
                          MPI_Datatype type, MPI_Op op) {
  moves(from, to, n, type, m, type);
  record_.op = op_number(op);
  return *this;
}

Tracing& Tracing::allreduce(const void* from, const void* to, MPI_Count n, MPI_Datatype type,
                            MPI_Op op, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  const MPI_Count parts = is_reduce_scatter_block(call_) ? others() : 1;
  return reduces(from, to, n * parts, n, type, op);
}

Tracing& Tracing::reduce(const void* from, const void* to, MPI_Count n, MPI_Datatype type,
                         MPI_Op op, int root, MPI_Comm) {
  if (!outermost_ || !comm_) return *this;
  const bool here = is_root(root), silent = comm_->inter && (here || root == MPI_PROC_NULL);
  reduces(from, to, silent ? 0 : n, here ? n : 0, type, op);
  return rooted(root);
}

}  // namespace wirepress
