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
#include "collectives/queues.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "job/job.hpp"
#include "job/library.hpp"
#include "messages/frames.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"
#include "recording/trace.hpp"

namespace wirepress {

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
Queues& queues() { return the<Queues>(); }

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

Queue* find_queue(Comm* comm, MPI_Count total) {
  if (!comm || !job().nonblocking || !job().world_multiple || comm->inter || !comm->all_world ||
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

void prepare_queues() {
  Job& j = job();
  if (!j.nonblocking) return;
  if (!j.world_multiple) {  // alike on all ranks
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
