// SPDX-License-Identifier: Apache-2.0
// What stands behind a wpr_ctx: one set of settings, memory and threads for all that it does.
#pragma once

#include "pipeline/jobs.hpp"
#include "pipeline/stream_reader.hpp"
#include "pipeline/stream_writer.hpp"

namespace wirepress {

struct Context {
  // The frame of the sum of two frames' contents.
  Status add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written);

  // As FrameWriter's and FrameReader's, of data and frames that may lie in memory of a device
  // (base/memory.hpp). *written: bytes of a frame or of what it holds; values that were added.
  Status perform(JobCall call, size_t* written);
  static Status check_beside(ConstBytes src, Bytes residual);
  Status decompress_range(ConstBytes frame, uint64_t offset, Bytes dst);
  Status inspect(ConstBytes frame, Header* header, std::string* recipe);
  Status copy(Bytes to, ConstBytes from);

  // What the caller's stream holds comes first, where a call is given memory of a device.
  static constexpr uintptr_t kNoStream = UINTPTR_MAX;  // nothing is on its way
  void* stream = nullptr;

  Interrupt interrupt;
  Settings settings;
  Stats stats;
  Chains chains;
  ThreadPool pool;
  FrameWriter writer{settings, chains, pool, stats, interrupt};
  FrameReader reader{settings, chains, pool, stats, interrupt};
  StreamWriter stream_writer{settings, writer, stats};
  StreamReader stream_reader{settings, reader, stats};
  Jobs jobs{*this};  // last: they have memory of what is above

 private:
  Status wait(const Place& place) const;
  // As a job that is waited for (Jobs::run).
  Status run(const JobCall& call, bool* done, size_t* written);
  // Frames are made and read by the cores: one of a device is copied whole.
  Status by_blocks(const JobCall& call, const Place& place, size_t* written);
  Status wait(const Place& a, const Place& b) const;
  // *frame, or its copy for the cores.
  Status fetch(ConstBytes* frame);
  // make(room) writes a frame of at most `most` bytes to dst, or to where the cores reach it first.
  template <class Make>
  Status make_frame(Bytes dst, size_t most, size_t* written, Make make);

  Buffer frame_, part_;
};

}  // namespace wirepress
