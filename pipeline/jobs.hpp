// SPDX-License-Identifier: Apache-2.0
// Calls that return before their work is done (wirepress.h, "jobs"): frames of data in memory of a
// device, made and expanded in the order of the caller's stream. Memory is kept from job to job,
// and nothing waits but who asks for it, and a call that needs more memory than there is: drivers
// wait for the device where they allocate and release. What is outgrown is released by a call that
// finds no job on its way.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pipeline/device_frames.hpp"
#include "pipeline/frame_reader.hpp"
#include "pipeline/frame_writer.hpp"

namespace wirepress {

struct Context;

// Memory of a place, or pinned memory that its devices reach. It grows only, by a quarter more than
// asked.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() { release(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  Status prepare(const Place& place, bool pinned, size_t size);
  std::byte* get() const { return data_; }
  // Of the bytes for this use: 0 where there are none.
  size_t room(const Place& place, bool pinned) const {
    return data_ != nullptr && place == place_ && pinned == pinned_ ? room_ : 0;
  }
  void swap(DeviceBuffer& other) {
    std::swap(place_, other.place_);
    std::swap(pinned_, other.pinned_);
    std::swap(data_, other.data_);
    std::swap(room_, other.room_);
  }

 private:
  void release();

  Place place_;
  bool pinned_ = false;
  std::byte* data_ = nullptr;
  size_t room_ = 0;
};

// What a job is to do.
struct JobCall {
  enum class Kind { kCompress, kFeedback, kExpand, kAdd };
  Kind kind = Kind::kCompress;
  ConstBytes src;   // data or a frame
  Bytes residual;   // of kFeedback
  Halves halves;    // of the data that have a residual, or of what is added to
  Header header{};  // of a frame that is made: dtype and shape
  Bytes dst;
  uint64_t seed = 0;          // of a frame that is made
  size_t* written = nullptr;  // of one of several: where poll() says it, too

  bool expands() const { return kind == Kind::kExpand || kind == Kind::kAdd; }
  // The device changes what it reads. Once it has begun, nobody else can do it.
  bool changes() const { return kind == Kind::kFeedback || kind == Kind::kAdd; }
  const char* changed() const { return kind == Kind::kAdd ? "dst" : "the residual"; }
};

// A call's part in a job.
struct JobPart {
  JobCall call;
  bool later = false;  // the device does not do it, and the call that waits does
  bool whole = false;  // kernels change something only if they leave no block to the cores
  uint64_t n_blocks = 0, raw_size = 0;
  size_t written = 0;
  size_t results = 0;               // where they are in pinned memory
  bool staged = false;              // the frame is made in pinned memory
  const std::byte* made = nullptr;  // the frame in pinned memory; nullptr: it goes to dst itself
  const StreamKernel* kernel = nullptr;
  // A frame that is made ...
  ChainPointer chain;
  Header header{};
  std::array<std::byte, kMaxHeader> head{};
  // ... or expanded.
  ParsedFrame frame;
};

struct Job {
  enum class State {
    kFree,
    kOnStream,  // the device has it
    kLater,     // the call that waits does it, once the mark is passed: no kernel could
    kDone
  };
  State state = State::kFree;
  Place place;                 // of the stream
  void* mark = nullptr;        // behind the work, where the place has streams
  void* own_stream = nullptr;  // for calls that wait; made with has_stream
  bool has_stream = false;
  void* stream = nullptr;      // that the work is put on
  size_t most = SIZE_MAX;      // raw bytes that the device is given
  bool uses_memory = false;    // `there` and `pinned`, until it is done
  const char* lost = nullptr;  // why the device does not do it, which should have
  Status failed;               // where nobody can do it any more
  bool reachable = false;      // the device reaches what it needs
  bool began = false;          // kernels were put on the stream

  // The first n_parts, of one direction; the others keep their memory.
  std::vector<std::unique_ptr<JobPart>> parts;
  size_t n_parts = 0;
  std::span<const std::unique_ptr<JobPart>> own() const { return std::span(parts).first(n_parts); }
  uint64_t raw_size() const;  // of all parts

  DeviceBuffer there, pinned;
  std::vector<DeviceEncoding> makes;  // while the work is put on the stream
  std::vector<DeviceExpanding> expands;
  StreamPlan plan;  // what kernels do for it
};

class Jobs {
 public:
  explicit Jobs(Context& context) : context_(context) {}
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // The calls' buffers are the job's until it is done. They are of one direction and on one device,
  // or the cores'. A failed call has touched nothing.
  Status begin(std::span<const JobCall> calls, Job** job);
  // Does a call now, on a stream of its own, where the device can do all of it: *done, or a failed
  // status. Else nothing has changed that the cores need. What the caller's stream holds is done.
  Status run(const JobCall& call, bool* done, size_t* written);
  // *done: the job ends with the status that is returned, and is no more. `waits`: until it does.
  Status poll(Job* job, bool waits, bool* done, size_t* written);
  bool knows(const Job* job) const;
  bool any() const;  // is on its way

 private:
  Status take(const Place& place, Job** job);
  // That of calls, with what it is to do.
  Status take(std::span<const JobCall> calls, Job** job);
  // Puts its work on job->stream, if the device can do it.
  Status put(Job* job, bool* on_stream);
  // Memory for the work of a job.
  Status prepare(Job* job, size_t there, size_t pinned);
  Status prepare(Job* job, DeviceBuffer Job::*buffer, bool pinned, size_t size);
  OnDevice on_device(const Job& job, const Recipe& recipe, const Halves& halves) const;
  // What the device does for a part, if it can. A failed status: the call is refused.
  Status plan_compress(Job* job, JobPart* part, bool* can);
  Status plan_decompress(Job* job, JobPart* part, bool* can);
  // Puts the work on the stream.
  template <class Frame>
  void launch(Job* job, std::vector<Frame>& frames, bool* on_stream);
  // Marks the stream behind what was put there.
  Status go(Job* job, bool on_stream);
  void* caller_stream() const;
  Status end_run(Job* job, bool on_stream, bool* done);
  Status end(Job* job, const Status& status);
  // What the device has done, and by the cores what it has left to them.
  Status conclude(Job* job);
  Status conclude(Job* job, JobPart& part, bool* elsewhere);
  Status conclude_compress(Job* job, JobPart& part, bool* elsewhere);
  Status conclude_decompress(Job* job, JobPart& part, bool* elsewhere);
  // Notes that the stream did not end what it should have.
  void lose(Job* job, const Status& status);
  // Notes that what kernels change of the call's buffers may be changed in part.
  void spoil(Job* job, const JobCall& call, size_t raw_size, const Status& status);
  Status do_now(Job* job);  // by the call that waits
  Status do_now(Job* job, JobPart* part);
  template <class Do>
  Status each_part(Job* job, Do part_of);

  Context& context_;
  std::vector<std::unique_ptr<Job>> all_;
  std::vector<std::unique_ptr<DeviceBuffer>> outgrown_;  // while jobs are on their way
  bool by_blocks_ = false;  // a call that waits is no job: the device could not end it as one
};

}  // namespace wirepress
