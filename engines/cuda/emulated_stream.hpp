// SPDX-License-Identifier: Apache-2.0
// Streams of the emulator's devices. Work waits in them until somebody lets it go on, so that tests
// see who waits where nobody should, and who touches what is not yet his. A stream that is none of
// these (the default one, nullptr) does its work at once.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "engines/cuda/emulator.hpp"

namespace wirepress::cuda {

// Its address is what wpr_set_stream takes. One thread at a time.
class EmulatedStream {
 public:
  // seed: of the schedules that its kernels run in.
  explicit EmulatedStream(uint64_t seed = 0);
  ~EmulatedStream();
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  // The oldest work; false: there is none.
  bool step();
  void drain();
  uint64_t put_count() const { return put_; }
  uint64_t done_count() const { return done_; }
  // Work number n, counted from 1, fails, and so does all behind it, as on a GPU whose kernel has
  // failed. 0: none.
  void fail_at(uint64_t n) { fail_at_ = n; }
  // A launch that the driver refuses at once: number n of those to come.
  void refuse_at(uint64_t n) { refuse_at_ = n; }
  bool will_refuse() const { return refuse_at_ > 0; }

  // Whether a graph records what is put there.
  void capture(bool captures) { captured_ = captures; }
  bool is_captured() const { return captured_; }

  // `work` may be called once.
  Status put(std::function<Status()> work);
  // Of a kernel: its own schedules.
  Emulator* emulator() { return &emulator_; }
  // As DeviceStreams has them.
  bool passed(uint64_t mark, Status* status) const;
  static EmulatedStream* find(void* stream);  // nullptr: none of these

 private:
  std::deque<std::function<Status()>> work_;
  uint64_t put_ = 0, done_ = 0, fail_at_ = 0, refuse_at_ = 0;
  bool captured_ = false;
  Status failed_{};
  Emulator emulator_;
};

// What kernels.hpp launches on: a stream of an emulated device.
class EmulatedQueue {
 public:
  EmulatedQueue(int device, void* stream)
      : device_(device), stream_(EmulatedStream::find(stream)) {}
  struct Bound {
    explicit Bound(const EmulatedQueue&) {}
  };

  // Bytes of the device, or pinned ones.
  std::byte* reach(const std::byte* at, size_t size) const noexcept;
  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    EmulatedStream* const stream = stream_;
    return put([=, device = device_] {
      count_emulated_launch(device);
      if (stream != nullptr) return stream->emulator()->launch(kernel, blocks);
      static thread_local Emulator own;
      return own.launch(kernel, blocks);
    });
  }
  Status clear(std::byte* at, size_t size) noexcept {
    return put([=] { return std::memset(at, 0, size), Status(); });
  }
  template <class Work>
  Status put(Work work) noexcept {
    try {
      return stream_ != nullptr ? stream_->put(work) : work();
    } catch (const std::bad_alloc&) {
      return fail(Code::kNoMemory, "cuda: no memory for work on a stream");
    }
  }

 private:
  int device_;
  EmulatedStream* stream_;
};

extern const DeviceStreams emulated_streams;

}  // namespace wirepress::cuda
