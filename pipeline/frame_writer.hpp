// SPDX-License-Identifier: Apache-2.0
// Writes frames: whole ones, and what streams of blocks are made of.
#pragma once

#include <span>
#include <vector>

#include "pipeline/device_blocks.hpp"
#include "pipeline/interrupt.hpp"
#include "pipeline/pool.hpp"
#include "pipeline/settings.hpp"
#include "pipeline/stats.hpp"

namespace wirepress {

// A block that was made and waits for its turn to be copied out.
struct EncodeSlot {
  Buffer code;
  Payload payload;
  BlockMaker::Begun begun;
  bool ready = false;
};

// How workers divide blocks with a device: each codes blocks while the device has others of its
// own, or there are more of them than cores, of which some wait for the device.
enum class Divided { kNot, kByBeginning, kByWaiting };

class FrameWriter {
 public:
  // What recipe=auto makes of a frame.
  struct Choice {
    Chooser chooser;
    std::vector<ChainPointer> groups, chains;  // by group; the different ones of the frame
  };
  // One group of blocks as recipe=auto sees it.
  struct Explained {
    uint64_t offset, size;
    const Chooser& chooser;
  };

  FrameWriter(Settings& settings, Chains& chains, ThreadPool& pool, Stats& stats,
              const Interrupt& interrupt)
      : settings_(settings), chains_(chains), pool_(pool), stats_(stats), interrupt_(interrupt) {}

  size_t bound(uint64_t raw_size) const;
  // `header` says dtype and shape; the rest is filled in from the settings. src lies at `place`.
  Status compress(ConstBytes src, Header header, Bytes dst, size_t* written, const Place& place);
  // src and residual are float32 arrays of one size at one place, or src are equally many halves;
  // residual is undefined after a failure other than kParameter or kDstTooSmall.
  Status compress_feedback(ConstBytes src, const Halves& halves, Bytes residual, Header header,
                           Bytes dst, size_t* written, const Place& place);
  // What of it can be refused before anything is touched; `room` is that of dst.
  Status check_feedback(const Header& header, size_t raw_size, size_t room) const;
  // The steps between arrays of words of one size; `header` says integers of their size.
  Status compress_steps(ConstBytes before, ConstBytes after, Header header, Bytes dst,
                        size_t* written);
  // The frame of the sum of two frames' contents, whose headers are equal.
  Status sum(const ParsedFrame& a, const ParsedFrame& b, Bytes dst, size_t* written);
  // Calls `row` for every group of src; `seen` is whatever it wants.
  Status explain(ConstBytes src, Header header, void (*row)(void* seen, const Explained& group),
                 void* seen);

  // Parts of a frame, for streams. The first two complete the header and write it to dst; on_cores
  // as in Settings::recipe_for.
  Status begin_plain(Header* header, ChainPointer* chain, Bytes dst, bool on_cores = false);
  Status begin_stored(Header* header, ChainPointer* chain, Bytes dst);  // nothing is known yet
  // Makes the chooser ready, and the header's blocks as its candidates want them.
  Status begin_auto(Choice* choice, Header* header);
  // Chains for every group of src, at most kMaxOwnRecipes different ones in a frame.
  Status choose_groups(const Header& header, int threads, ConstBytes src, Choice* choice);
  // By `threads`, or fewer where the maker has fewer workers.
  Status make_blocks(const BlockMaker& maker, int threads, Bytes dst, size_t* written);
  // Counts, for the calling thread, what the cores took over from a device that failed.
  static void note_failures(Chain& chain, std::span<const ChainPointer> others);
  // Counts what kernels coded that the option engine does not name; `groups` as of PlainBlocks.
  void count_kernels(const Chain& chain, std::span<const ChainPointer> groups, const Header& header,
                     size_t raw_size) const;

 private:
  Status begin_frame(const Recipe& recipe, Header* header, ChainPointer* chain, Bytes dst);
  Status compress_there(ConstBytes src, const Halves& halves, Bytes residual, Header header,
                        Bytes dst, size_t* written, const Place& place);
  Status begin_auto_frame(ConstBytes src, Header* header, ChainPointer* chain, Bytes dst);
  Status end_frame(const BlockMaker& maker, Bytes dst, size_t* written);
  Status make_serial(const BlockMaker& maker, Bytes dst, size_t* written);
  Status make_parallel(const BlockMaker& maker, int threads, Divided divided, Bytes dst,
                       size_t* written);

  Settings& settings_;
  Chains& chains_;
  ThreadPool& pool_;
  Stats& stats_;
  const Interrupt& interrupt_;
  Choice choice_;  // of whole frames
  std::vector<EncodeSlot> slots_;
  std::vector<Staging> staging_;  // of workers
  Buffer whole_;                  // data of a device that recipe=auto looks at
};

}  // namespace wirepress
