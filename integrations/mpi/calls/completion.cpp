// SPDX-License-Identifier: Apache-2.0
// Wait and Test in all their forms: whichever call completes a request does the work due for it.
#include <memory>
#include <vector>

#include "calls/wrap.hpp"
#include "job/library.hpp"
#include "messages/quick.hpp"
#include "messages/requests.hpp"
#include "messages/thread.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

// A started receive whose message came from the stash, or whose work was done early: MPI does not
// know that it is active.
bool completed(const Record* record) { return record && record->active && record->completed; }
bool due(const Record* record) { return !record->persistent || record->active; }

// MPI knows nothing of this request's being complete, or works on another one for it.
bool stands_in(const Record* record) {
  return completed(record) || (record && record->sends_inner());
}

// After its request completed (or failed): a persistent one goes back, inactive.
void retire(Record* record) {
  if (!record->persistent) return free_record(record);
  record->active = record->completed = record->prepared = false;
  if (record->resend) {
    record->resend->inner = MPI_REQUEST_NULL;
    record->frame.release();
  }
  record->error = MPI_SUCCESS;
  put(record);
}

// After an error of MPI, which leaves `request`: one that it keeps, because of a fault that the
// program may acknowledge, is still to be completed.
void leave(Record* record, MPI_Request request) {
  const bool kept =
      record->resend ? record->sends_inner() : !record->persistent && request != MPI_REQUEST_NULL;
  kept ? put(record) : retire(record);
}

// The request that MPI works on for the user's.
MPI_Request* behind(Record* record, MPI_Request* request) {
  return record->sends_inner() ? &record->resend->inner : request;
}

// Raises the error of a single completion.
int finish_one(Record* record, MPI_Status* status) {
  const int error = due(record) ? settle(record, status) : MPI_SUCCESS;
  if (error) raise(record->incoming.comm, error);
  retire(record);
  return error;
}

int wait_one(MPI_Request* request, MPI_Status* status) {
  Record* record = inert() || !request ? nullptr : take(*request);
  if (!request) return PMPI_Wait(request, status);
  if (!record) return wait_for(request, status);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  if (completed(record)) return finish_one(record, status);
  const int error = timed(kWait, [&] { return wait_for(behind(record, request), status); });
  if (error) return leave(record, *request), error;
  return finish_one(record, status);
}

int test_one(MPI_Request* request, int* flag, MPI_Status* status) {
  Record* record = inert() || !request ? nullptr : take(*request);
  if (!record) return PMPI_Test(request, flag, status);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  if (completed(record)) {
    *flag = 1;
    return finish_one(record, status);
  }
  const int error = PMPI_Test(behind(record, request), flag, status);
  if (error) return leave(record, *request), error;
  if (*flag) return finish_one(record, status);
  put(record);
  return MPI_SUCCESS;
}

// The records of an array of requests, taken out of the map.
class Batch {
 public:
  Batch(int n, const MPI_Request* requests) : n_(n > 0 ? n : 0) {
    if (n_ == 0 || !requests || inert() || g_n_records.load(std::memory_order_relaxed) == 0) return;
    if (n_ > kInline) more_.reset(new Record*[static_cast<size_t>(n_)]);
    for (int i = 0; i < n_; ++i) {
      records()[i] = take(requests[i]);
      any_ |= records()[i] != nullptr;
      stand_ins_ |= stands_in(records()[i]);
      if (first_completed_ < 0 && completed(records()[i])) first_completed_ = i;
    }
  }
  bool any() const { return any_; }
  int first_completed() const { return first_completed_; }
  // Of what MPI is to see another request than the user's.
  bool stand_ins() const { return stand_ins_; }
  // MPI has completed it, and is not to see it again.
  void complete(int i) { records()[i]->completed = stand_ins_ = true; }
  Record*& operator[](int i) { return records()[i]; }
  Record* release(int i) {
    Record* record = records()[i];
    records()[i] = nullptr;
    return record;
  }
  // Those that are still waited for.
  void put_back() {
    for (int i = 0; i < n_; ++i) {
      if (Record* record = release(i)) put(record);
    }
  }

 private:
  static constexpr int kInline = 64;
  Record** records() { return more_ ? more_.get() : few_; }
  int n_;
  int first_completed_ = -1;
  bool any_ = false, stand_ins_ = false;
  Record* few_[kInline];
  std::unique_ptr<Record*[]> more_;
};

// Does the work of all receives among them that may be in pieces: their senders may wait for one
// after the other.
void await_large(Batch& batch, int n) {
  for (bool all = false; !all;) {
    all = true;
    bool any = advance_receives();
    for (int i = 0; i < n; ++i) {
      Record* record = batch[i];
      if (!record || !is_large(*record) || !due(record) || record->prepared) continue;
      if (record->failed) continue;
      if (settle_early(record)) {
        any = true;
      } else {
        all &= record->failed;
      }
    }
    if (!any && !all) give_way();
  }
}

// With threads Open MPI's Waitall waits for ever for a request that had failed before.
void complete_failed(Batch& batch, int n, MPI_Request* requests) {
  if (!job().multiple || !is_open_mpi()) return;
  for (int i = 0; i < n; ++i) {
    const Record* record = batch[i];
    if (!record || record->persistent || !record->prepared || record->error == MPI_SUCCESS) {
      continue;
    }
    PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    batch.complete(i);
  }
}

// The user's statuses, or our own where the user wants none.
class Statuses {
 public:
  Statuses(int n, MPI_Status* statuses) : statuses_(statuses) {
    if (statuses != MPI_STATUSES_IGNORE) return;
    statuses_ = few_;
    if (n > kInline) own_.reset(new MPI_Status[static_cast<size_t>(n)]());
    if (own_) statuses_ = own_.get();
  }
  MPI_Status* get() { return statuses_; }
  MPI_Status& operator[](int i) { return statuses_[i]; }

 private:
  static constexpr int kInline = 8;
  MPI_Status* statuses_;
  MPI_Status few_[kInline] = {};
  std::unique_ptr<MPI_Status[]> own_;
};

int error_class(int error) {
  int result = error;
  if (error != MPI_SUCCESS) PMPI_Error_class(error, &result);
  return result;
}

// Finishes requests that completed together; entry k belongs to request index(k).
template <typename Index>
int finish_many(Batch& batch, const MPI_Request* requests, int n_done, Index index,
                Statuses& statuses, int error) {
  const bool failed = error != MPI_SUCCESS;
  bool marked = failed;
  Comm* raise_on = nullptr;
  for (int k = 0; k < n_done; ++k) {
    Record* record = batch.release(index(k));
    if (!record) continue;
    const int entry =
        failed && !completed(record) ? error_class(statuses[k].MPI_ERROR) : MPI_SUCCESS;
    if (entry == MPI_ERR_PENDING) {
      put(record);
      continue;
    }
    if (entry != MPI_SUCCESS) {
      leave(record, requests[index(k)]);
      continue;
    }
    int own = MPI_SUCCESS;
    if (due(record)) own = settle(record, &statuses[k]);
    if (own) {
      for (int i = 0; !marked && i < n_done; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
      marked = true;
      statuses[k].MPI_ERROR = own;
      if (!raise_on) {
        raise_on = record->incoming.comm;
        retain(raise_on);
      }
    }
    retire(record);
  }
  if (failed || !marked) return error;
  raise(raise_on, MPI_ERR_IN_STATUS);
  release(raise_on);
  return MPI_ERR_IN_STATUS;
}

// Calls MPI with the requests that it is to work on: without those that are complete already.
template <typename Body>
int with_stand_ins(Batch& batch, int n, MPI_Request* requests, Body body) {
  if (!batch.stand_ins()) return body(requests);
  std::vector<MPI_Request> seen(requests, requests + n);
  for (int i = 0; i < n; ++i) {
    MPI_Request& request = seen[static_cast<size_t>(i)];
    if (completed(batch[i])) request = MPI_REQUEST_NULL;
    if (batch[i] && batch[i]->sends_inner()) request = batch[i]->resend->inner;
  }
  const int error = body(seen.data());
  for (int i = 0; i < n; ++i) {
    const MPI_Request request = seen[static_cast<size_t>(i)];
    if (batch[i] && batch[i]->sends_inner()) {
      batch[i]->resend->inner = request;
    } else if (!completed(batch[i])) {
      requests[i] = request;
    }
  }
  return error;
}

int same(int k) { return k; }

int wait_all(int n, MPI_Request* requests, MPI_Status* user_statuses) {
  Batch batch(n, requests);
  if (!batch.any()) return PMPI_Waitall(n, requests, user_statuses);
  Statuses statuses(n, user_statuses);
  const int error = timed(kWaitall, [&] {
    await_large(batch, n);
    complete_failed(batch, n, requests);
    return with_stand_ins(batch, n, requests,
                          [&](MPI_Request* rest) { return PMPI_Waitall(n, rest, statuses.get()); });
  });
  if (error && error_class(error) != MPI_ERR_IN_STATUS) return batch.put_back(), error;
  return finish_many(batch, requests, n, same, statuses, error);
}

int test_all(int n, MPI_Request* requests, int* flag, MPI_Status* user_statuses) {
  Batch batch(n, requests);
  if (!batch.any()) return PMPI_Testall(n, requests, flag, user_statuses);
  Statuses statuses(n, user_statuses);
  const int error = with_stand_ins(batch, n, requests, [&](MPI_Request* rest) {
    return PMPI_Testall(n, rest, flag, statuses.get());
  });
  const bool in_status = error && error_class(error) == MPI_ERR_IN_STATUS;
  if (error && !in_status) return batch.put_back(), error;
  if (!error && !*flag) return batch.put_back(), MPI_SUCCESS;
  return finish_many(batch, requests, n, same, statuses, error);
}

// One of many completed: `error` is what MPI said of it.
int finish_any(Batch& batch, const MPI_Request* requests, int n, int index, MPI_Status* status,
               int error) {
  Record* record = index >= 0 && index < n ? batch.release(index) : nullptr;
  batch.put_back();
  if (!record) return error;
  if (error) return leave(record, requests[index]), error;
  return finish_one(record, status);
}

int wait_any(int n, MPI_Request* requests, int* index, MPI_Status* status) {
  Batch batch(n, requests);
  if (!batch.any()) return PMPI_Waitany(n, requests, index, status);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  int error = MPI_SUCCESS;
  *index = batch.first_completed();
  if (*index < 0) {
    error = timed(kWaitany, [&] {
      return with_stand_ins(batch, n, requests, [&](MPI_Request* seen) {
        return PMPI_Waitany(n, seen, index, status);
      });
    });
  }
  return finish_any(batch, requests, n, *index, status, error);
}

int test_any(int n, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Batch batch(n, requests);
  if (!batch.any()) return PMPI_Testany(n, requests, index, flag, status);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  int error = MPI_SUCCESS;
  *index = batch.first_completed();
  if (*index >= 0) {
    *flag = 1;
  } else {
    error = with_stand_ins(batch, n, requests, [&](MPI_Request* seen) {
      return PMPI_Testany(n, seen, index, flag, status);
    });
  }
  return finish_any(batch, requests, n, *flag || error ? *index : MPI_UNDEFINED, status, error);
}

// `body` is Waitsome or Testsome.
template <typename Body>
int some(int n, MPI_Request* requests, int* n_done, int* indices, MPI_Status* user_statuses,
         Body body) {
  Batch batch(n, requests);
  if (!batch.any()) return body(requests, user_statuses);
  Statuses statuses(n, user_statuses);
  int error = MPI_SUCCESS;
  if (batch.first_completed() >= 0) {
    *n_done = 1;
    indices[0] = batch.first_completed();
  } else {
    error = with_stand_ins(batch, n, requests,
                           [&](MPI_Request* seen) { return body(seen, statuses.get()); });
    if (error && error_class(error) != MPI_ERR_IN_STATUS) *n_done = 0;
  }
  const int result = finish_many(
      batch, requests, *n_done == MPI_UNDEFINED ? 0 : *n_done, [&](int k) { return indices[k]; },
      statuses, error);
  batch.put_back();
  return result;
}

int wait_some(int n, MPI_Request requests[], int* n_done, int indices[], MPI_Status statuses[]) {
  return some(n, requests, n_done, indices, statuses, [&](MPI_Request* seen, MPI_Status* to) {
    const double start = now();
    const int error = PMPI_Waitsome(n, seen, n_done, indices, to);
    if (g_mode.load(std::memory_order_relaxed) != kInert) {
      stats(kWaitsome).wait_seconds += now() - start;
    }
    return error;
  });
}

int test_some(int n, MPI_Request requests[], int* n_done, int indices[], MPI_Status statuses[]) {
  return some(n, requests, n_done, indices, statuses, [&](MPI_Request* seen, MPI_Status* to) {
    return PMPI_Testsome(n, seen, n_done, indices, to);
  });
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Record* record = inert() ? nullptr : take(request);
  if (!record) return PMPI_Request_get_status(request, flag, status);
  MPI_Status own{};
  if (status == MPI_STATUS_IGNORE) status = &own;
  int error = MPI_SUCCESS;
  if (completed(record)) {
    *flag = 1;
    settle(record, status);
  } else if (record->persistent && record->receives && record->active) {
    *flag = settle_early(record);
    if (*flag) settle(record, status);
  } else {
    const int kept = status->MPI_ERROR;  // standard: not to be touched
    status->MPI_ERROR = MPI_SUCCESS;
    error = PMPI_Request_get_status(*behind(record, &request), flag, status);
    const bool failed = error || status->MPI_ERROR != MPI_SUCCESS;
    if (!failed) status->MPI_ERROR = kept;
    if (!failed && *flag && record->receives && due(record)) {
      // The buffer is to be ready from now on; the call that frees the request reports errors.
      const int result = settle(record, status);
      record->status = *status;
      record->error = result;
      record->prepared = true;
    }
  }
  put(record);
  return error;
}

int request_free(MPI_Request* request) {
  Record* record = inert() || !request ? nullptr : take(*request);
  if (!record) {
    if (request) forget_starts(*request);
    return PMPI_Request_free(request);
  }
  if (record->sends_inner()) {
    auto* orphan = new Record;
    orphan->request = record->resend->inner;
    orphan->frame = std::move(record->frame);
    adopt_orphan(orphan);
  }
  if (record->prepared || !due(record) || record->resend) {
    free_record(record);
    return PMPI_Request_free(request);
  }
  // A frame still being sent, or a receive that is still to be expanded: MPI keeps the request.
  adopt_orphan(record);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int cancel(MPI_Request* request) {
  Record* record = inert() || !request ? nullptr : take(*request);
  if (!record) return PMPI_Cancel(request);
  const bool too_late = completed(record);
  const int error = too_late ? MPI_SUCCESS : PMPI_Cancel(behind(record, request));
  put(record);
  return error;
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

WPR_WRAP(MPI_Wait, MPI_Request* request, MPI_Status* status) {
  if (only_for_mpi()) return PMPI_Wait(request, status);
  WPR_TRACE(kWait, MPI_COMM_NULL, completes(1, request, &status, false), wait_one(request, status));
}
WPR_WRAP(MPI_Test, MPI_Request* request, int* flag, MPI_Status* status) {
  if (only_for_mpi()) return PMPI_Test(request, flag, status);
  WPR_TRACE(kTest, MPI_COMM_NULL, when(flag).completes(1, request, &status, false),
            test_one(request, flag, status));
}
WPR_WRAP(MPI_Waitall, int n, MPI_Request requests[], MPI_Status statuses[]) {
  if (only_for_mpi()) return PMPI_Waitall(n, requests, statuses);
  WPR_TRACE(kWaitall, MPI_COMM_NULL, completes(n, requests, &statuses, true),
            wait_all(n, requests, statuses));
}
WPR_WRAP(MPI_Testall, int n, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (only_for_mpi()) return PMPI_Testall(n, requests, flag, statuses);
  WPR_TRACE(kTestall, MPI_COMM_NULL, when(flag).completes(n, requests, &statuses, true),
            test_all(n, requests, flag, statuses));
}
WPR_WRAP(MPI_Waitany, int n, MPI_Request requests[], int* index, MPI_Status* status) {
  if (only_for_mpi()) return PMPI_Waitany(n, requests, index, status);
  WPR_TRACE(kWaitany, MPI_COMM_NULL, one_of(index).completes(n, requests, &status, false),
            wait_any(n, requests, index, status));
}
WPR_WRAP(MPI_Testany, int n, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  WPR_TRACE(kTestany, MPI_COMM_NULL,
            one_of(index).when(flag).completes(n, requests, &status, false),
            test_any(n, requests, index, flag, status));
}
WPR_WRAP(MPI_Waitsome, int n, MPI_Request requests[], int* n_done, int indices[],
         MPI_Status statuses[]) {
  WPR_TRACE(kWaitsome, MPI_COMM_NULL,
            some_of(n_done, indices).completes(n, requests, &statuses, true),
            wait_some(n, requests, n_done, indices, statuses));
}
WPR_WRAP(MPI_Testsome, int n, MPI_Request requests[], int* n_done, int indices[],
         MPI_Status statuses[]) {
  WPR_TRACE(kTestsome, MPI_COMM_NULL,
            polls().some_of(n_done, indices).completes(n, requests, &statuses, true),
            test_some(n, requests, n_done, indices, statuses));
}
WPR_WRAP(MPI_Request_get_status, MPI_Request request, int* flag, MPI_Status* status) {
  WPR_TRACE(kRequestGetStatus, MPI_COMM_NULL, polls(), get_status(request, flag, status));
}
WPR_WRAP(MPI_Request_free, MPI_Request* request) {
  WPR_TRACE(kRequestFree, MPI_COMM_NULL, frees(request), request_free(request));
}
WPR_WRAP(MPI_Cancel, MPI_Request* request) { return cancel(request); }

#ifdef WPR_MPI_GET_STATUS_ALL
WPR_WRAP(MPI_Request_get_status_all, int n, const MPI_Request requests[], int* flag,
         MPI_Status statuses[]) {
  *flag = 1;
  for (int i = 0; i < n && *flag; ++i) {
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    if (const int error = get_status(requests[i], flag, status)) return error;
  }
  return MPI_SUCCESS;
}
#endif
#if defined(WPR_MPI_GET_STATUS_ANY) || defined(WPR_MPI_GET_STATUS_SOME)
namespace {

// Requests of which MPI alone knows; those of this library, of which it does not know all, are
// null.
struct Apart {
  std::vector<MPI_Request> of_mpi;
  std::vector<int> own;  // active ones
};
Apart apart(int n, const MPI_Request* requests) {
  Apart all;
  if (n > 0) all.of_mpi.assign(requests, requests + n);
  for (int i = 0; i < n; ++i) {
    Record* record = take(requests[i]);
    if (!record) continue;
    all.of_mpi[static_cast<size_t>(i)] = MPI_REQUEST_NULL;
    if (due(record)) all.own.push_back(i);
    put(record);
  }
  return all;
}

bool only_of_mpi() { return inert() || g_n_records.load(std::memory_order_relaxed) == 0; }

}  // namespace
#endif
#ifdef WPR_MPI_GET_STATUS_ANY
WPR_WRAP(MPI_Request_get_status_any, int n, const MPI_Request requests[], int* index, int* flag,
         MPI_Status* status) {
  if (only_of_mpi())
    return PMPI_Request_get_status_any(n, const_cast<MPI_Request*>(requests), index, flag, status);
  Apart all = apart(n, requests);
  for (const int i : all.own) {
    if (const int error = get_status(requests[i], flag, status)) return error;
    if (*flag) return *index = i, MPI_SUCCESS;
  }
  const int error = PMPI_Request_get_status_any(n, all.of_mpi.data(), index, flag, status);
  if (error == MPI_SUCCESS && *index == MPI_UNDEFINED && !all.own.empty()) *flag = 0;
  return error;
}
#endif
#ifdef WPR_MPI_GET_STATUS_SOME
WPR_WRAP(MPI_Request_get_status_some, int n, const MPI_Request requests[], int* n_done,
         int indices[], MPI_Status statuses[]) {
  if (only_of_mpi())
    return PMPI_Request_get_status_some(n, const_cast<MPI_Request*>(requests), n_done, indices,
                                        statuses);
  Apart all = apart(n, requests);
  const auto status_of = [&](int k) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUSES_IGNORE : &statuses[k];
  };
  int n_own = 0, n_rest = 0;
  for (const int i : all.own) {
    int flag = 0;
    MPI_Status* const status =
        statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[n_own];
    if (const int error = get_status(requests[i], &flag, status)) return error;
    if (flag) indices[n_own++] = i;
  }
  const int error = PMPI_Request_get_status_some(n, all.of_mpi.data(), &n_rest, indices + n_own,
                                                 status_of(n_own));
  if (error != MPI_SUCCESS) return error;
  const bool none = n_rest == MPI_UNDEFINED;
  *n_done = none && all.own.empty() ? MPI_UNDEFINED : n_own + (none ? 0 : n_rest);
  return MPI_SUCCESS;
}
#endif
