// SPDX-License-Identifier: Apache-2.0
// The map from request handles to the work that is due when they complete. A handle's value may be
// used again as soon as MPI completed it: the record is taken out before MPI is called, and put
// back if the request is still there.
#include "messages/requests.hpp"

#include <mutex>
#include <vector>

#include "job/library.hpp"
#include "messages/stash.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"

namespace wirepress {

std::atomic<size_t> g_n_records{0};
std::atomic<int> g_n_orphans{0};
std::atomic<int> g_n_large{0};

namespace {

constexpr size_t kShards = 64, kBuckets = 64;

struct alignas(64) Shard {
  std::mutex lock;
  Record* bucket[kBuckets] = {};
};
Shard* shards() {
  static auto* all = new Shard[kShards];
  return all;
}

// A shard's lock, where threads may call MPI at the same time.
class Hold {
 public:
  explicit Hold(Shard& shard) : lock_(job().multiple ? &shard.lock : nullptr) {
    if (lock_) lock_->lock();
  }
  ~Hold() {
    if (lock_) lock_->unlock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::mutex* lock_;
};

uint64_t mix(uint64_t bits) {
  bits *= 0x9E3779B97F4A7C15u;
  return bits ^ (bits >> 29);
}

struct Orphans {
  std::mutex lock;
  std::vector<Record*> list;
};
Orphans& orphans() { return the<Orphans>(); }

void count_orphans(size_t n) {
  const auto before = g_n_orphans.exchange(static_cast<int>(n), std::memory_order_relaxed);
  if ((before == 0) != (n == 0)) update_quick_epoch();
}

// Takes the orphans whose requests completed out of the list.
std::vector<Record*> completed_orphans() {
  std::vector<Record*> done;
  std::lock_guard hold(orphans().lock);
  std::vector<Record*>& list = orphans().list;
  for (size_t i = 0; i < list.size();) {
    int flag = 0;
    const int error = PMPI_Test(&list[i]->request, &flag, &list[i]->status);
    if (error == MPI_SUCCESS && !flag) {
      ++i;
      continue;
    }
    if (error != MPI_SUCCESS) list[i]->error = error;
    if (list[i]->persistent) PMPI_Request_free(&list[i]->request);
    done.push_back(list[i]);
    list[i] = list.back();
    list.pop_back();
  }
  count_orphans(list.size());
  return done;
}

}  // namespace

void put(Record* record) {
  const uint64_t hash = mix(handle_bits(record->request));
  Shard& shard = shards()[hash % kShards];
  const Hold hold(shard);
  Record** bucket = &shard.bucket[(hash >> 8) % kBuckets];
  record->next = *bucket;
  *bucket = record;
  if (is_large(*record)) bump(&g_n_large, 1);
  bump(&g_n_records, size_t{1});
}

Record* take(MPI_Request request) {
  if (request == MPI_REQUEST_NULL || g_n_records.load(std::memory_order_relaxed) == 0) {
    return nullptr;
  }
  const uint64_t hash = mix(handle_bits(request));
  Shard& shard = shards()[hash % kShards];
  for (;; sched_yield()) {
    const Hold hold(shard);
    Record** link = &shard.bucket[(hash >> 8) % kBuckets];
    while (*link && (*link)->request != request) link = &(*link)->next;
    Record* record = *link;
    if (!record) return nullptr;
    if (record->busy) continue;
    *link = record->next;
    if (is_large(*record)) bump(&g_n_large, -1);
    bump(&g_n_records, size_t{0} - 1);
    return record;
  }
}

bool is_large(const Record& record) {
  return record.receives && job().pieces_from > 0 && record.incoming.capacity >= job().pieces_from;
}

namespace {

// Large receives that are started and whose work is not done, marked busy.
std::vector<Record*> hold_large() {
  std::vector<Record*> held;
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards()[i];
    const Hold hold(shard);
    for (Record* record : shard.bucket) {
      for (; record; record = record->next) {
        const bool started = !record->persistent || record->active;
        if (!started || record->busy || record->prepared || record->failed) continue;
        if (!is_large(*record)) continue;
        record->busy = true;
        held.push_back(record);
      }
    }
  }
  return held;
}

void let_go(Record* record) {
  const uint64_t hash = mix(handle_bits(record->request));
  const Hold hold(shards()[hash % kShards]);
  record->busy = false;
}

}  // namespace

bool settle_early(Record* record) {
  int flag = 0;
  MPI_Status status{};
  int error;
  if (record->persistent) {
    // Completes it, for MPI. MPI_Request_get_status would do that, too, in MPICH 4.2, and whoever
    // then waits for the request is told that it was never started.
    error = PMPI_Test(&record->request, &flag, &status);
    record->completed = error || flag;
  } else {
    // Of a failed request MPICH returns the error and raises it, each time; Open MPI has it in the
    // status alone, whose size is then that of the message, not of the buffer.
    if (record->failed) return false;
    error = PMPI_Request_get_status(record->request, &flag, &status);
    record->failed = error || (flag && status.MPI_ERROR != MPI_SUCCESS);
    if (record->failed) return false;
  }
  if (!error && !flag) return false;
  if (!error) error = settle(record, &status);
  record->status = status;
  record->error = error;
  record->prepared = true;
  return true;
}

bool advance_receives() {
  if (g_n_large.load(std::memory_order_relaxed) == 0) return false;
  bool any = false;
  for (Record* record : hold_large()) {
    any |= settle_early(record);
    let_go(record);
  }
  return any;
}

int wait_for(MPI_Request* request, MPI_Status* status) {
  for (int flag = 0; g_n_large.load(std::memory_order_relaxed) > 0;) {
    if (const int error = PMPI_Test(request, &flag, status); error || flag) return error;
    if (!advance_receives()) give_way();
  }
  return PMPI_Wait(request, status);
}

int wait_apart(MPI_Request* request, MPI_Status* status) {
  static const bool spins = !is_open_mpi();
  if (!spins) return PMPI_Wait(request, status);
  for (int flag = 0;; sched_yield()) {
    if (const int error = PMPI_Test(request, &flag, status); error || flag) return error;
  }
}

bool receives_orphans() {
  std::lock_guard hold(orphans().lock);
  for (const Record* record : orphans().list) {
    if (record->receives) return true;
  }
  return false;
}

void free_record(Record* record) {
  drop(&record->incoming);
  if (record->resend && record->resend->owns_type) PMPI_Type_free(&record->resend->type);
  if (record->incoming.comm) release(record->incoming.comm);
  delete record;
}

int make_complete_request(MPI_Request* request) {
  static std::atomic<int> next{0};
  const int tag = kTagRequest + (next.fetch_add(1, std::memory_order_relaxed) & kTagMask);
  MPI_Request sent;
  int error = PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, tag, job().self, request);
  if (error == MPI_SUCCESS) error = PMPI_Isend(nullptr, 0, MPI_BYTE, 0, tag, job().self, &sent);
  if (error == MPI_SUCCESS) error = PMPI_Wait(&sent, MPI_STATUS_IGNORE);
  return error;
}

int settle(Record* record, MPI_Status* status) {
  if (!record->receives) return MPI_SUCCESS;
  if (record->prepared) {
    const int kept = status->MPI_ERROR;  // standard: not ours to touch
    *status = record->status;
    status->MPI_ERROR = kept;
    return record->error;
  }
  int cancelled = 0;
  PMPI_Test_cancelled(status, &cancelled);
  return cancelled ? MPI_SUCCESS : finish(&record->incoming, status);
}

void track(MPI_Request request, Record* record) {
  record->request = request;
  record->receives = true;
  retain(record->incoming.comm);
  put(record);
}

void prepare_record(Record* record, Stashed* stashed) {
  record->error = finish_from_stash(&record->incoming, stashed, &record->status);
  record->prepared = true;
}

void adopt_orphan(Record* record) {
  self_thread().events.orphans += record->receives;
  std::lock_guard hold(orphans().lock);
  orphans().list.push_back(record);
  count_orphans(orphans().list.size());
}

namespace {

// Before MPI_Finalize: sends are MPI's again, as the program freed them. Their frames stay, for MPI
// may still be sending.
void hand_back_sends() {
  std::lock_guard hold(orphans().lock);
  for (Record* record : orphans().list) {
    if (record->receives || record->request == MPI_REQUEST_NULL) continue;
    PMPI_Request_free(&record->request);
    static auto* kept = new std::vector<Record*>;
    kept->push_back(record);
  }
  std::erase_if(orphans().list, [](const Record* record) {
    return !record->receives && record->request == MPI_REQUEST_NULL;
  });
  count_orphans(orphans().list.size());
}

void finish_completed_orphans() {
  for (Record* record : completed_orphans()) {
    if (record->error == MPI_SUCCESS) {
      if (const int error = settle(record, &record->status)) raise(record->incoming.comm, error);
    }
    free_record(record);
  }
}

}  // namespace

void drain_orphans(bool wait) {
  // A message that nobody sends to a freed receive is not waited for for ever.
  const double give_up = now() + 20.0;
  finish_completed_orphans();
  if (wait) hand_back_sends();
  while (wait && g_n_orphans.load(std::memory_order_relaxed) > 0 && now() < give_up) {
    finish_completed_orphans();
  }
}

}  // namespace wirepress
