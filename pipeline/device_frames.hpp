// SPDX-License-Identifier: Apache-2.0
// Frames that a device makes and expands in the order of a stream: the memory that this takes, and
// what is put there. Nothing here waits, or allocates memory of a device.
#pragma once

#include <cstring>
#include <vector>

#include "base/streams.hpp"
#include "frame/frame.hpp"
#include "pipeline/blocks.hpp"
#include "pipeline/halves.hpp"

namespace wirepress {

// Parts of memory, one behind the other.
class Layout {
 public:
  static constexpr size_t up(size_t size) {
    constexpr size_t kAligned = 256;
    return (size + kAligned - 1) / kAligned * kAligned;
  }
  size_t add(size_t size) {
    const size_t at = size_;
    size_ += up(size);
    return at;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// What does the work, and where.
struct OnDevice {
  const StreamKernel* kernel;
  Place place;
  void* stream;

  const StreamKernel* casts = nullptr;  // of the caller's halves

  const DeviceStreams& streams() const { return *place.memory->streams; }
};

// A frame's part in the work on a stream. Its memory is laid out, and its launches are noted, in
// turns with those of other frames (FramesOnStream).
class DeviceFrame {
 public:
  // halves: the caller's values; kernels have float32 (where some are, `on` casts them).
  DeviceFrame(const OnDevice& on, const Header& header, const Halves& halves, StreamPlan& plan)
      : on_(on), header_(header), halves_(halves), plan_(plan) {}
  size_t results() const { return results_; }  // where they are, from those of the first frame on

 protected:
  // Blocks go side by side as far as there is scratch memory for each.
  void lay_out_scratch(size_t each, size_t n_blocks);
  void place_scratch(Layout* there) { scratch_ = there->add(at_once_ * each_); }
  std::byte* scratch(std::byte* there) const { return there + scratch_ + turn_ * each_; }
  void begin_blocks() { noted_ = 0; }
  void begin_block();
  Status copy(std::byte* to, const std::byte* from, size_t size) const {
    return on_.streams().copy(on_.place.device, on_.stream, to, from, size);
  }

  // Memory for halves as float32.
  void lay_out_casts(Layout* there) { cast_report_ = halves_ ? there->add(sizeof(Report)) : 0; }
  void lay_out_wide(Layout* there) { wide_ = halves_ ? there->add(header_.raw_size) : 0; }
  void fill_casts(std::byte* pinned) const {
    if (halves_) *reinterpret_cast<Report*>(pinned + cast_report_) = kNoReport;
  }
  std::byte* wide(std::byte* there) const { return there + wide_; }
  Status note_widen(const std::byte* halves, std::byte* there);
  Status note_narrow(std::byte* halves, std::byte* there);

  const OnDevice on_;
  const Header& header_;
  const Halves& halves_;
  StreamPlan& plan_;
  size_t results_ = 0;

 private:
  StreamTask cast(std::byte* halves, std::byte* there) const;
  Args cast_args() const;

  size_t scratch_ = 0, each_ = 0, at_once_ = 1, noted_ = 0, turn_ = 0;
  size_t wide_ = 0, cast_report_ = 0;
};

// A frame of data in memory of the device. With a residual it is made by the codec's kernel for
// that, or in parts: the sum of both is coded, the code decoded, and what it lacks is kept.
class DeviceEncoding : public DeviceFrame {
 public:
  struct Data {
    ConstBytes raw;
    Bytes residual;  // empty: none
    Bytes dst;
    const Halves& halves;  // of `raw`
    bool staged;           // dst is the cores', and the frame is made in pinned memory
    bool probed;           // blocks that look like noise are stored as they are
    size_t bound;          // of the frame
  };
  // header: complete, as it is written in `head`.
  DeviceEncoding(const OnDevice& on, const Recipe& recipe, const Header& header, ConstBytes head,
                 uint64_t seed, const Data& data, StreamPlan& plan);
  Status check(bool* can) const;           // *can false: the device cannot do it
  size_t frame() const { return frame_; }  // where it is in pinned memory, if it is staged

  // For FramesOnStream.
  void lay_out_results(Layout* there) { results_ = there->add(sizeof(Sealed)); }
  void lay_out_inputs(Layout* there);
  void lay_out_rest(Layout* there, Layout* pinned);
  void fill(std::byte* pinned) const;
  Status copy_before(std::byte*, const std::byte*) const { return {}; }
  Status note_first(std::byte* there);
  Status note_blocks(std::byte* there);
  Status note_last(std::byte* there);
  Status note_frame(std::byte* there, std::byte* pinned);

 private:
  Args args(uint64_t i) const;
  size_t bound(uint64_t i) const;
  size_t room(uint64_t i) const;
  size_t scratch_size(uint64_t i) const;
  Status check(uint64_t i) const;
  bool may_be_unstored(uint64_t i) const;
  // The data as float32.
  std::byte* raw(std::byte* there) const {
    return halves_ ? wide(there) : const_cast<std::byte*>(data_.raw.data());
  }
  Status note_block(uint64_t i, std::byte* there);
  Report* reports(std::byte* there) const { return reinterpret_cast<Report*>(there + reports_); }

  const Recipe& recipe_;
  const ConstBytes head_;
  const uint64_t seed_;
  const Data data_;
  const uint64_t n_;
  const bool feedback_, in_parts_;
  // Where parts are in memory of the device, and the frame.
  size_t slot_ = 0, reports_ = 0, header_at_ = 0, all_well_ = 0, sealed_ = 0, codes_ = 0,
         values_ = 0, sum_ = 0, frame_ = 0;
};

// A frame in memory of the cores, expanded to memory of the device, or added to what is there: by
// the codec's own kernel, or where it has none for that, behind the expanding of all blocks, if
// kernels could expand them all.
class DeviceExpanding : public DeviceFrame {
 public:
  DeviceExpanding(const OnDevice& on, const ParsedFrame& frame, Bytes dst, const Halves& halves,
                  bool adds, StreamPlan& plan);
  // A failed status: the frame is damaged. *can false: the device cannot do it.
  Status check(bool* can) const;

  // For FramesOnStream.
  void lay_out_results(Layout* there);
  void lay_out_inputs(Layout* there);
  void lay_out_rest(Layout* there, Layout* pinned);
  void fill(std::byte* pinned) const;
  Status copy_before(std::byte* there, const std::byte* pinned) const;
  Status note_first(std::byte* there);
  Status note_blocks(std::byte* there);
  Status note_last(std::byte* there);
  Status note_frame(std::byte*, std::byte*) { return {}; }

 private:
  // Whether a kernel has the block. Another one is copied to where it belongs.
  bool is_noted(const Block& block) const { return adds_ || !block.raw; }
  std::byte* out(size_t i, std::byte* there) const {
    return (sums_ ? there + values_ : total(there)) + i * header_.block_size();
  }
  // What is written, or added to, as float32.
  std::byte* total(std::byte* there) const { return halves_ ? wide(there) : dst_.data(); }
  size_t scratch_size(size_t raw_size) const;
  void reserve_longest(Layout* there, Layout* pinned) const;
  Status note_block(size_t i, std::byte* payload, std::byte* there);

  const std::vector<Block>& blocks_;
  const Bytes dst_;
  const bool adds_;  // by the codec's kernel
  const bool sums_;  // behind it
  const Args args_;
  size_t all_well_ = 0, payloads_ = 0, values_ = 0, stored_ = 0, narrow_ = 0;
};

// What a job puts on its stream, for frames of one direction: launches are those of all blocks of
// all frames together. Begins with lay_out(), which says how much memory of the device and how much
// pinned memory the work takes. launch() is given them, and they are the work's until the stream is
// done. The first bytes of both are the results, then what the work begins with, its tables last.
template <class Frame>
class FramesOnStream {
 public:
  FramesOnStream(const OnDevice& on, std::vector<Frame>& frames, StreamPlan& plan)
      : on_(on), frames_(frames), plan_(plan) {}
  bool lay_out() {  // false: the device cannot do it
    for (Frame& frame : frames_) frame.lay_out_results(&there_);
    n_results_ = there_.size();
    for (Frame& frame : frames_) frame.lay_out_inputs(&there_);
    // What is noted of a draft is counted from somewhere: no memory is there yet.
    if (!note(true, reinterpret_cast<std::byte*>(uintptr_t{1} << 32), nullptr).ok()) return false;
    tables_ = there_.add(plan_.table_size());
    inputs_ = there_.size();
    pinned_.add(inputs_);
    results_ = pinned_.add(n_results_);
    for (Frame& frame : frames_) frame.lay_out_rest(&there_, &pinned_);
    return true;
  }
  size_t there() const { return there_.size(); }
  size_t pinned() const { return pinned_.size(); }
  size_t results() const { return results_; }  // of all frames, in pinned memory
  bool began() const { return began_; }        // kernels were put on the stream
  Status launch(std::byte* there, std::byte* pinned) {
    std::memset(pinned, 0, tables_);
    for (Frame& frame : frames_) frame.fill(pinned);
    WPR_TRY(note(false, there, pinned));
    plan_.put_tables(pinned + tables_);
    WPR_TRY(copy(there, pinned, inputs_));
    for (Frame& frame : frames_) WPR_TRY(frame.copy_before(there, pinned));
    began_ = true;
    WPR_TRY(plan_.launch(on_.place.device, on_.stream, there + tables_));
    return copy(pinned + results_, there, n_results_);
  }

 private:
  // Of all frames what comes first, then their blocks, what is done behind these, and the frame.
  Status note(bool draft, std::byte* there, std::byte* pinned) {
    plan_.begin(draft);
    WPR_TRY(note_all([&](Frame& frame) { return frame.note_first(there); }));
    WPR_TRY(note_all([&](Frame& frame) { return frame.note_blocks(there); }));
    WPR_TRY(note_all([&](Frame& frame) { return frame.note_last(there); }));
    return note_all([&](Frame& frame) { return frame.note_frame(there, pinned); });
  }
  template <class Note>
  Status note_all(Note note_one) {
    plan_.begin_round();
    for (Frame& frame : frames_) {
      plan_.begin_block();
      WPR_TRY(note_one(frame));
    }
    return {};
  }
  Status copy(std::byte* to, const std::byte* from, size_t size) const {
    return on_.streams().copy(on_.place.device, on_.stream, to, from, size);
  }

  const OnDevice on_;
  std::vector<Frame>& frames_;
  StreamPlan& plan_;
  Layout there_, pinned_;
  size_t n_results_ = 0, tables_ = 0, inputs_ = 0, results_ = 0;
  bool began_ = false;
};

}  // namespace wirepress
