// SPDX-License-Identifier: Apache-2.0
// Non-blocking collectives that are compressed, where the user wants it (mpi_nonblocking) and MPI
// can be called from several threads.
//
// A thread for each communicator runs them in the order of their calls, as blocking collectives on
// a communicator of its own. So they mix with nothing, and whatever a blocking collective does
// (algorithms, contests, errors) holds for them as well. The user holds a generalized request.
// That communicator is made by MPI_Comm_create_group in the thread: it waits for the other members'
// threads, never for what their programs do next, and it interferes with no other call.
// Calls that members could not decide alike (the v and w forms) are left to MPI.
#include <condition_variable>
#include <functional>
#include <thread>

#include "collectives/collectives.hpp"
#include "recording/trace.hpp"

namespace wirepress {

// What the thread is to run; lives until MPI frees the request.
struct Errand {
  std::function<int(MPI_Comm)> body;
  MPI_Request request = MPI_REQUEST_NULL;
  Comm* comm = nullptr;
  int error = MPI_SUCCESS;
  std::atomic<bool> done{false};  // MPI's own way to say so is not known to race detectors
  bool raised = false;
  MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  bool owns[2] = {false, false};
};

struct Queue {
  Comm* comm = nullptr;
  MPI_Comm base = MPI_COMM_NULL;
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Errand*> errands;
  bool ends = false;
  std::thread thread;
};

namespace {

constexpr int kGroupTag = 0x6000;

// Threads that wait for a communicator: that a rank can have them was agreed at the start.
constexpr size_t kWaiting = 4;

struct Queues {
  std::mutex lock;
  std::vector<Queue*> all;
  std::vector<Queue*> waiting;
};
Queues& queues() {
  static auto* table = new Queues;
  return *table;
}

int make_base(Queue* queue) {
  MPI_Group group;
  int error = PMPI_Comm_group(queue->comm->handle, &group);
  if (error) return error;
  error = PMPI_Comm_create_group(queue->comm->handle, group, kGroupTag, &queue->base);
  PMPI_Group_free(&group);
  if (!error) PMPI_Comm_set_errhandler(queue->base, MPI_ERRORS_RETURN);
  return error;
}

void free_types(Errand* errand) {
  for (int i = 0; i < 2; ++i) {
    if (errand->owns[i]) PMPI_Type_free(&errand->types[i]);
    errand->owns[i] = false;
  }
}

void raise_error(Errand* errand) {
  if (errand->error && !errand->raised) raise(errand->comm, errand->error);
  errand->raised = true;
}

void run(Queue* queue, Errand* errand) {
  if (queue->base == MPI_COMM_NULL) errand->error = make_base(queue);
  if (!errand->error) errand->error = errand->body(queue->base);
  free_types(errand);
  // MPICH calls query() under its lock, where no other function may be called.
  if (!is_open_mpi()) raise_error(errand);
  errand->done.store(true, std::memory_order_release);
  PMPI_Grequest_complete(errand->request);
}

void run_errands(Queue* queue) {
  never_trace_this_thread();
  for (;;) {
    std::unique_lock hold(queue->lock);
    queue->changed.wait(hold, [&] { return queue->ends || !queue->errands.empty(); });
    if (queue->errands.empty()) return;
    Errand* errand = queue->errands.front();
    queue->errands.pop_front();
    hold.unlock();
    run(queue, errand);
  }
}

// Without a thread where there can be none.
Queue* make_queue() {
  auto* queue = new Queue;
  try {
    queue->thread = std::thread(run_errands, queue);
  } catch (...) {
    ++self_thread().events.no_memory;
  }
  return queue;
}

// False: there are no more threads to be had.
bool fill_waiting() {
  while (queues().waiting.size() < kWaiting) {
    Queue* queue = make_queue();
    if (!queue->thread.joinable()) {
      delete queue;
      return false;
    }
    queues().waiting.push_back(queue);
  }
  return true;
}

// The last calls of a user's thread to the request.
int query(void* state, MPI_Status* status) {
  auto* errand = static_cast<Errand*>(state);
  errand->done.load(std::memory_order_acquire);
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  raise_error(errand);
  return errand->error;
}
// Calls nothing of MPI: MPICH holds its lock here.
int free_errand(void* state) {
  auto* errand = static_cast<Errand*>(state);
  errand->done.load(std::memory_order_acquire);
  release(errand->comm);
  delete errand;
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }  // not possible with collectives

// nullptr: left to MPI. `total` is equal on all members.
Queue* find_queue(Comm* comm, MPI_Count total) {
  if (!comm || !job().nonblocking || !job().multiple || comm->inter || !comm->all_world ||
      !comm->any_remote || total < static_cast<MPI_Count>(std::max(job().threshold, kMinWire))) {
    return nullptr;
  }
  std::lock_guard hold(queues().lock);
  if (comm->queue) return comm->queue;
  Queue* queue;
  if (queues().waiting.empty()) {
    queue = make_queue();
  } else {
    queue = queues().waiting.back();
    queues().waiting.pop_back();
  }
  queue->comm = comm;
  queues().all.push_back(queue);
  return comm->queue = queue;
}

Errand* make_errand(Comm* comm) {
  auto* errand = new Errand;
  errand->comm = comm;
  retain(comm);
  return errand;
}

// The type lives until the errand is done.
MPI_Datatype keep(Errand* errand, int i, MPI_Datatype datatype) {
  Type type;
  if (!look_up(datatype, &type) || type.named) return datatype;
  errand->types[i] = datatype;
  keep_type(&errand->types[i], &errand->owns[i]);
  return errand->types[i];
}

int send_off(Call call, Queue* queue, Errand* errand, MPI_Request* request) {
  ++stats(call).messages;
  const int error = PMPI_Grequest_start(query, free_errand, cancel, errand, &errand->request);
  if (error) {
    free_types(errand);
    free_errand(errand);
    return error;
  }
  *request = errand->request;
  if (!queue->thread.joinable()) {
    // The others are waiting for this rank: it waits for them, here.
    run(queue, errand);
    return MPI_SUCCESS;
  }
  std::lock_guard hold(queue->lock);
  queue->errands.push_back(errand);
  queue->changed.notify_one();
  return MPI_SUCCESS;
}

bool is_predefined(MPI_Op op) {
  for (MPI_Op known : {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND,
                       MPI_BOR, MPI_BXOR}) {
    if (op == known) return true;
  }
  return false;
}

template <typename N>
bool reducible(MPI_Datatype datatype, N count, MPI_Op op, MPI_Count* total) {
  Type type;
  return is_predefined(op) && look_up(datatype, &type) && type.named &&
         product(count, type.size, total);
}

template <typename N>
int ibcast(void* buffer, N count, MPI_Datatype datatype, int root, MPI_Comm handle,
           MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count total = 0;
  const bool sound = comm && root >= 0 && root < comm->size && look_up(datatype, &type) &&
                     product(count, type.size, &total);
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(kIbcast, handle, kNonblocking,
               [&](Across& across) { across.bcast(buffer, count, datatype, root, handle); });
    return ibcast_form<N>::call(buffer, count, datatype, root, handle, request);
  }
  Errand* errand = make_errand(comm);
  datatype = keep(errand, 0, datatype);
  errand->body = [=](MPI_Comm base) {
    return our_bcast_form<N>::call(buffer, count, datatype, root, base);
  };
  return send_off(kIbcast, queue, errand, request);
}

template <typename N>
int iallreduce(const void* from, void* to, N count, MPI_Datatype datatype, MPI_Op op,
               MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  Queue* queue = comm && reducible(datatype, count, op, &total) ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(kIallreduce, handle, kNonblocking,
               [&](Across& across) { across.allreduce(from, to, count, datatype, op, handle); });
    return iallreduce_form<N>::call(from, to, count, datatype, op, handle, request);
  }
  Errand* errand = make_errand(comm);
  errand->body = [=](MPI_Comm base) {
    return our_allreduce_form<N>::call(from, to, count, datatype, op, base);
  };
  return send_off(kIallreduce, queue, errand, request);
}

template <typename N>
int ireduce(const void* from, void* to, N count, MPI_Datatype datatype, MPI_Op op, int root,
            MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  MPI_Count total = 0;
  Queue* queue = comm && root >= 0 && root < comm->size && reducible(datatype, count, op, &total)
                     ? find_queue(comm, total)
                     : nullptr;
  if (!queue) {
    count_left(kIreduce, handle, kNonblocking,
               [&](Across& across) { across.reduce(from, to, count, datatype, op, root, handle); });
    return ireduce_form<N>::call(from, to, count, datatype, op, root, handle, request);
  }
  Errand* errand = make_errand(comm);
  errand->body = [=](MPI_Comm base) {
    return our_reduce_form<N>::call(from, to, count, datatype, op, root, base);
  };
  return send_off(kIreduce, queue, errand, request);
}

// Iallgather and Ialltoall: each member gets blocks of equal size.
template <template <typename> class Own, template <typename> class Plain, Call call, typename N>
int iblocks(const void* from, N count, MPI_Datatype type, void* to, N to_count,
            MPI_Datatype to_type, MPI_Comm handle, MPI_Request* request) {
  Comm* comm = collective_comm(handle);
  Type sent, got;
  MPI_Count total = 0;
  const bool sound = comm && look_up(to_type, &got) && product(to_count, got.size, &total) &&
                     (from == MPI_IN_PLACE || look_up(type, &sent));
  Queue* queue = sound ? find_queue(comm, total) : nullptr;
  if (!queue) {
    count_left(call, handle, kNonblocking, [&](Across& across) {
      if (call == kIallgather) {
        across.allgather(from, count, type, to, to_count, to_type, handle);
      } else {
        across.alltoall(from, count, type, to, to_count, to_type, handle);
      }
    });
    return Plain<N>::call(from, count, type, to, to_count, to_type, handle, request);
  }
  Errand* errand = make_errand(comm);
  if (from != MPI_IN_PLACE) type = keep(errand, 0, type);
  to_type = keep(errand, 1, to_type);
  errand->body = [=](MPI_Comm base) {
    return Own<N>::call(from, count, type, to, to_count, to_type, base);
  };
  return send_off(call, queue, errand, request);
}

void end(Queue* queue) {
  if (!queue->thread.joinable()) return;
  {
    std::lock_guard hold(queue->lock);
    queue->ends = true;
    queue->changed.notify_one();
  }
  queue->thread.join();
}

}  // namespace

void prepare_queues() {
  Job& j = job();
  if (!j.nonblocking) return;
  if (!j.multiple) {  // alike on all ranks
    if (j.rank == 0) {
      complain("MPI has no MPI_THREAD_MULTIPLE: non-blocking collectives are left to it");
    }
    return;
  }
  int ready = fill_waiting();
  PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (ready) return;
  j.nonblocking = false;
  complain("a rank can have no threads: non-blocking collectives are left to MPI");
}

void end_queue(Comm* comm) {
  Queue* queue = comm->queue;
  if (!queue) return;
  end(queue);
  if (queue->base != MPI_COMM_NULL) {
    forget_comm(queue->base);
    PMPI_Comm_free(&queue->base);
  }
  std::lock_guard hold(queues().lock);
  std::erase(queues().all, queue);
  delete queue;
  comm->queue = nullptr;
  fill_waiting();
}

void end_queues() {
  for (Queue* queue : queues().all) end(queue);
  for (Queue* queue : queues().waiting) {
    end(queue);
    delete queue;
  }
  queues().all.clear();  // their communicators end with MPI
  queues().waiting.clear();
}

}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_WRAP(MPI_Ibcast##suffix, void* buf, N count, MPI_Datatype type, int root, MPI_Comm comm,     \
           MPI_Request* request) {                                                                 \
    WPR_TRACE(kIbcast, comm, bcast(buf, count, type, root, comm).starts(request),                  \
              ibcast<N>(buf, count, type, root, comm, request));                                   \
  }                                                                                                \
  WPR_WRAP(MPI_Iallreduce##suffix, const void* from, void* to, N count, MPI_Datatype type,         \
           MPI_Op op, MPI_Comm comm, MPI_Request* request) {                                       \
    WPR_TRACE(kIallreduce, comm, allreduce(from, to, count, type, op, comm).starts(request),       \
              iallreduce<N>(from, to, count, type, op, comm, request));                            \
  }                                                                                                \
  WPR_WRAP(MPI_Ireduce##suffix, const void* from, void* to, N count, MPI_Datatype type, MPI_Op op, \
           int root, MPI_Comm comm, MPI_Request* request) {                                        \
    WPR_TRACE(kIreduce, comm, reduce(from, to, count, type, op, root, comm).starts(request),       \
              ireduce<N>(from, to, count, type, op, root, comm, request));                         \
  }                                                                                                \
  WPR_WRAP(MPI_Iallgather##suffix, const void* from, N count, MPI_Datatype type, void* to,         \
           N to_count, MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {                \
    WPR_TRACE(kIallgather, comm,                                                                   \
              allgather(from, count, type, to, to_count, to_type, comm).starts(request),           \
              iblocks<our_allgather_form, iallgather_form, kIallgather, N>(                        \
                  from, count, type, to, to_count, to_type, comm, request));                       \
  }                                                                                                \
  WPR_WRAP(MPI_Ialltoall##suffix, const void* from, N count, MPI_Datatype type, void* to,          \
           N to_count, MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {                \
    WPR_TRACE(kIalltoall, comm,                                                                    \
              alltoall(from, count, type, to, to_count, to_type, comm).starts(request),            \
              iblocks<our_alltoall_form, ialltoall_form, kIalltoall, N>(                           \
                  from, count, type, to, to_count, to_type, comm, request));                       \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
