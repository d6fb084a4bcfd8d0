// SPDX-License-Identifier: Apache-2.0
// wirepress::Context for Python: takes and makes Python objects, lets other threads run meanwhile,
// and lets one call at a time use the context.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <wirepress/wirepress.hpp>

#include "buffer.hpp"

namespace wirepress::python {

uint64_t hash(nanobind::handle data, uint64_t seed);  // wpr_hash
// wpr_place_of: engine, device, address on the cores.
nanobind::tuple place_of(uintptr_t address);
// Copies to an address, or from it (wpr_copy); the other side is any buffer.
void copy_to(uintptr_t address, nanobind::handle data);
void copy_from(uintptr_t address, nanobind::handle out);
// Until what a stream holds is done that works on memory of a device at this address.
void wait_for(uintptr_t address, intptr_t stream);
uintptr_t device_alloc(const std::string& engine, int device, size_t size);
void device_free(uintptr_t address);

class Job;
using Clock = std::chrono::steady_clock;

class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  double number(const std::string& key);
  nanobind::tuple error_bound(const std::string& key);  // wpr_error_kind, value
  std::string origin(const std::string& key);

  // n_dims and shape as in wpr_compress_array; data must hold what the shape says.
  nanobind::bytes compress(nanobind::handle data, int dtype, int n_dims,
                           const std::vector<uint64_t>& shape);
  size_t compress_into(nanobind::handle data, int dtype, int n_dims,
                       const std::vector<uint64_t>& shape, nanobind::handle out);
  size_t bound(size_t raw_size);
  // `stream`: of the work that a frame in memory of a device is behind, in place of set_stream's.
  nanobind::bytes decompress(nanobind::handle frame, std::optional<intptr_t> stream);
  size_t decompress_into(nanobind::handle frame, nanobind::handle out);
  // data hold values of this type, residual as many of float32.
  nanobind::bytes compress_feedback(nanobind::handle data, int dtype, nanobind::handle residual);
  size_t compress_feedback_into(nanobind::handle data, int dtype, nanobind::handle residual,
                                nanobind::handle out);
  size_t decompress_add(nanobind::handle frame, nanobind::handle out, int dtype);
  nanobind::bytes add(nanobind::handle a, nanobind::handle b);
  // Both have the same size, a multiple of word_size.
  nanobind::bytes compress_steps(nanobind::handle before, nanobind::handle after, size_t word_size);
  size_t take_steps(nanobind::handle frame, nanobind::handle words);
  nanobind::bytes decompress_range(nanobind::handle frame, uint64_t offset, size_t size);
  nanobind::list explain(nanobind::handle data, int dtype, int n_dims,
                         const std::vector<uint64_t>& shape);
  nanobind::tuple inspect(nanobind::handle frame, std::optional<intptr_t> stream);
  bool lossless(const std::string& recipe, int dtype);

  nanobind::bytes stream_begin(int dtype);
  nanobind::bytes stream_update(nanobind::handle data);
  nanobind::bytes stream_end();
  void expand_begin();
  // Reads data from offset on; returns (consumed, written, done).
  nanobind::tuple expand_update(nanobind::handle data, size_t offset, nanobind::handle out);

  void set_stream(intptr_t stream);  // wpr_set_stream
  intptr_t stream() const { return stream_; }
  // Jobs (wirepress.h), put on `stream`. `self` is this object as Python has it. Without an `out`
  // the frame becomes bytes.
  Job* compress_async(nanobind::object self, nanobind::object data, int dtype, int n_dims,
                      const std::vector<uint64_t>& shape, nanobind::object out, intptr_t stream);
  Job* decompress_async(nanobind::object self, nanobind::object frame, nanobind::object out,
                        intptr_t stream);
  // Their data, types and residual as of compress_feedback and decompress_add.
  Job* compress_feedback_async(nanobind::object self, nanobind::object data, int dtype,
                               nanobind::object residual, nanobind::object out, intptr_t stream);
  Job* decompress_add_async(nanobind::object self, nanobind::object frame, nanobind::object out,
                            int dtype, intptr_t stream);

  wpr_stats stats();
  void reset_stats();
  // Without the interpreter's lock, and while no call uses the context.
  void between_calls(const std::function<void()>& work);

  // Several frames as one job. Each row is (data, residual or None, out, seed): data of this type,
  // and as many values of float32; or (frame, None, out, 0), to be expanded to `out` or added to
  // the float32 there.
  Job* compress_pieces_async(nanobind::object self, const nanobind::list& rows, int dtype,
                             intptr_t stream);
  Job* decompress_pieces_async(nanobind::object self, const nanobind::list& rows, bool add,
                               intptr_t stream);

 private:
  friend class Job;
  template <class Begin>
  Job* pieces_async(nanobind::object self, const nanobind::list& rows, size_t size, intptr_t stream,
                    Begin begin);
  // begin(context, input, rest, to, room) begins a job that makes a frame of `data`, whose raw size
  // is known; `residual` may be None.
  template <class Begin>
  Job* make_async(nanobind::object self, nanobind::object data, nanobind::object residual,
                  nanobind::object out, size_t raw_size, Begin begin);
  // call(context_), alone with the context.
  template <class Call>
  auto alone(Call call);
  // The same without the interpreter's lock. A long call of the main thread runs the handlers of
  // signals, and ends with what one of them raises.
  template <class Call>
  auto run(Call call);
  // The same for a call that writes up to cap(context_) bytes to where it is told, and returns how
  // many it wrote; both see the same settings.
  template <class Cap, class Call>
  nanobind::bytes make_bytes(Cap cap, Call call, Fill fill = Fill::kPart);

  // A fork waits for the calls that other threads are in: the child's copies are whole. A call that
  // began to look for signals just before waits for the interpreter's lock, which the fork has: it
  // is left, and its copy refused.
  struct AtFork;
  class Looking;
  void hold();
  void let_go(bool in_child);

  bool is_interrupted();
  bool runs_handlers() const;  // this thread, in a call of the context
  void check_usable() const;

  std::mutex mutex_;
  wirepress::Context context_;
  Clock::time_point look_at_;     // when signals are looked for; {}: not yet
  std::exception_ptr interrupt_;  // what a handler raised
  bool may_look_ = false;
  std::atomic<bool> looks_{false};
  std::atomic<std::thread::id> looker_{};  // whose handlers run
  bool left_ = false, torn_ = false;       // by a fork; in the child
  uint64_t n_sets_ = 0;                    // calls of set()
  intptr_t stream_ = 0;
};

// A job, with all that it reads and writes, until it is done.
class Job {
 public:
  // begin() gives the job, alone with the context; nullptr: none has begun. `residual` may be None.
  // `out` None: bytes of at most `cap`.
  template <class Begin>
  Job(nanobind::object context, nanobind::object data, nanobind::object residual,
      nanobind::object out, size_t cap, Begin begin);
  // Of several pieces, which begin(context, pieces) begins with.
  template <class Begin>
  Job(nanobind::object context, const nanobind::list& rows, size_t size, Begin begin);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool begun() const { return job_ != nullptr; }  // of a new one
  bool done();
  // Waits. The bytes, or how many were written to `out`, or to each piece's; throws the job's
  // error.
  nanobind::object result();

 private:
  // Whether it is done, by a thread that has not the interpreter's lock.
  bool look();
  void wait(bool looks_for_signals);
  void leave();
  void let_go();
  Context& context() const;

  nanobind::object owner_, data_, residual_, out_;  // that the memory below is of
  std::unique_ptr<Input> input_;
  std::unique_ptr<Output> rest_, output_;
  std::unique_ptr<NewBytes> bytes_;
  struct Held {
    nanobind::object data, residual, out;
    std::unique_ptr<Input> input;
    std::unique_ptr<Output> rest, output;
  };
  std::vector<Held> held_;
  std::vector<wpr_piece> pieces_;
  // Written alone with the context. The job last: who reads that it is no more, with the lock of
  // the interpreter and without that of the context, sees the others.
  size_t written_ = 0;
  std::exception_ptr error_;
  std::atomic<wpr_job*> job_{nullptr};
  nanobind::object result_;
};

}  // namespace wirepress::python
