// SPDX-License-Identifier: Apache-2.0
#include "messages/thread.hpp"

#include <mutex>
#include <vector>

#include "choosing/candidates.hpp"
#include "job/comms.hpp"

namespace wirepress {

constinit thread_local Thread* t_thread = nullptr;

namespace {

struct Threads {
  std::mutex lock;
  std::vector<Thread*> all;
  Counts ended;  // of threads that are gone
};
Threads& threads() { return the<Threads>(); }

// Ends a thread's part with the thread.
struct Holder {
  ~Holder() {
    Thread* thread = t_thread;
    if (thread) thread->sample_there.release();
    t_thread = nullptr;
    t_last_comm = {};
    if (!thread) return;
    for (wpr_ctx* ctx : thread->ctx) wpr_free(ctx);
    wpr_free(thread->decoder);
    std::lock_guard hold(threads().lock);
    std::erase(threads().all, thread);
    threads().ended.add(*thread);
    delete thread;
  }
};

wpr_ctx* make_context() {
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);  // its variables were checked when the job started
  if (!ctx) return nullptr;
  wpr_set(ctx, "threads", "1");
  wpr_set(ctx, "checksum", job().checksum ? "on" : "off");
  wpr_set_stream(ctx, WPR_NO_STREAM);  // MPI's rule: buffers are ready when a call has them
  return ctx;
}

}  // namespace

Thread* make_thread() {
  static thread_local Holder holder;
  (void)holder;
  t_thread = new Thread;
  std::lock_guard hold(threads().lock);
  threads().all.push_back(t_thread);
  return t_thread;
}

Counts count_all() {
  std::lock_guard hold(threads().lock);
  Counts counts = threads().ended;
  for (const Thread* thread : threads().all) counts.add(*thread);
  return counts;
}

wpr_ctx* context(Thread& thread, int candidate) {
  wpr_ctx*& ctx = thread.ctx[static_cast<size_t>(candidate)];
  if (ctx) return ctx;
  ctx = make_context();
  if (ctx && wpr_set(ctx, "recipe", candidate_recipe(candidate)) != WPR_OK) {
    wpr_free(ctx);
    ctx = nullptr;
  }
  return ctx;
}

wpr_ctx* decoder(Thread& thread) {
  if (!thread.decoder) thread.decoder = make_context();
  return thread.decoder;
}

}  // namespace wirepress
