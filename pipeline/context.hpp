// SPDX-License-Identifier: Apache-2.0
// What stands behind a wpr_ctx: settings, reusable memory, threads, statistics.
#pragma once

#include <memory>
#include <vector>

#include "base/options.hpp"
#include "pipeline/auto.hpp"
#include "pipeline/blocks.hpp"
#include "pipeline/pool.hpp"

namespace wirepress {

// A block that was made and waits for its turn to be copied out.
struct EncodeSlot {
  Buffer code;
  Payload payload;
  bool ready = false;
};

// Work of one worker when blocks are expanded.
struct ExpandItem {
  size_t block;
  size_t part;
  size_t n_parts;
};

class Context {
 public:
  Status read_environment();
  Status set(const char* key, const char* value);
  const Options& options() const { return options_; }

  size_t bound(uint64_t raw_size) const;
  // `header` says dtype and shape; the rest is filled in from the options.
  Status compress(ConstBytes src, Header header, Bytes dst, size_t* written);
  Status decompress(ConstBytes frame, Bytes dst, size_t* written);
  // src and residual are float32 arrays of one size; residual is undefined after a failure other
  // than kParameter or kDstTooSmall.
  Status compress_feedback(ConstBytes src, Bytes residual, Header header, Bytes dst,
                           size_t* written);
  // dst[i] += content[i], float32.
  Status decompress_add(ConstBytes frame, Bytes dst, size_t* written);
  // The frame of the sum of two frames' contents, float32.
  Status add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written);
  Status decompress_range(ConstBytes frame, uint64_t offset, Bytes dst);
  // One group of blocks as recipe=auto sees it.
  struct Explained {
    uint64_t offset, size;
    const Chooser& chooser;
  };
  // Calls `row` for every group of src; `seen` is whatever it wants.
  Status explain(ConstBytes src, Header header, void (*row)(void* seen, const Explained& group),
                 void* seen);
  // Whether a recipe gives back every bit of data of that type.
  Status lossless(const char* text, DType dtype, bool* answer) const;
  // Header and the text of its recipe.
  Status inspect(ConstBytes frame, Header* header, std::string* recipe);

  size_t stream_bound(uint64_t n) const;
  Status stream_begin(DType dtype, Bytes dst, size_t* written);
  Status stream_update(ConstBytes src, Bytes dst, size_t* written);
  Status stream_end(Bytes dst, size_t* written);

  Status expand_begin();
  Status expand_update(ConstBytes src, size_t* consumed, Bytes dst, size_t* written, bool* done);

  const Stats& stats() const { return stats_; }
  void reset_stats() { stats_ = {}; }

 private:
  // What recipe=auto makes of a frame.
  struct Choice {
    Chooser chooser;
    std::vector<ChainPointer> groups, chains;  // by group; the different ones of the frame
  };

  int n_workers() const;
  Status settle();  // re-reads the settings after a change
  Status chain_for(const Recipe& recipe, int threads, ChainPointer* chain);
  Status begin_frame(const Recipe& recipe, Header* header, ChainPointer* chain, Bytes dst);
  Status recipe_for(const Header& header, Recipe* recipe) const;
  Status begin_auto(Choice* choice, Header* header, Recipe* store);
  // Chains for every group of src, at most kMaxOwnRecipes different ones in a frame.
  Status choose_groups(const Header& header, int threads, ConstBytes src, Choice* choice);
  Status compress_auto(ConstBytes src, Header header, Bytes dst, size_t* written);
  bool wants_auto() const { return is_auto(options_.get("recipe")); }

  Status make_blocks(const BlockMaker& maker, int threads, Bytes dst, size_t* written);
  Status make_serial(const BlockMaker& maker, Bytes dst, size_t* written);
  Status make_parallel(const BlockMaker& maker, int threads, Bytes dst, size_t* written);
  Status find_chains(const Header& header, const ChainPointer& chain, int threads,
                     std::vector<Block>* blocks, std::vector<ChainPointer>* chains);
  // Expands `blocks_`, which follow each other, into dst, or adds them to it; `chain` is made for
  // `threads`.
  Status expand_blocks(const Header& header, const ChainPointer& chain, int threads, bool add,
                       Bytes dst);
  Status expand_frame(ConstBytes frame, bool add, Bytes dst, size_t* written);
  Status check_room(uint64_t raw_size, Bytes dst) const;

  Options options_;
  bool settled_ = false;
  Settings settings_;
  std::vector<ChainPointer> chains_;  // most recently used last
  Choice choice_;                     // of whole frames
  ThreadPool pool_;
  std::vector<EncodeSlot> slots_;
  std::vector<Block> blocks_;
  std::vector<ChainPointer> block_chains_;
  std::vector<ExpandItem> items_;
  Buffer partial_;  // a block of which decompress_range needs a part
  Stats stats_;

  Status stream_batch(size_t n, bool end, Bytes dst, size_t* written);
  struct CompressStream {
    bool active = false;
    bool chooses = false;
    Settings settings;  // as they were when it began
    Header header;
    ChainPointer chain;
    Choice choice;
    uint64_t index = 0;  // of the next block
    Buffer pending;
    size_t n_pending = 0;
    size_t batch = 0;  // raw bytes that are compressed together
  } stream_;

  enum class Expect { kNothing, kHeader, kBlocks, kEnd };
  struct ExpandStream {
    Expect expect = Expect::kNothing;
    int threads = 1;  // as they were when it began
    Header header;
    ChainPointer chain;
    uint64_t index = 0;  // of the next block
    uint64_t n_raw = 0;  // raw bytes of the blocks before it
    Buffer input;        // header, then whole blocks of this batch and a part of the next
    size_t n_input = 0;
    size_t block_begin = 0;  // in input: where the block being gathered starts
    size_t need = 0;         // bytes in input that complete what is being gathered
    size_t n_blocks = 0;     // whole ones in input
    Buffer output;
    size_t n_output = 0, taken = 0;
    bool last = false;  // the batch ends the frame
  } expand_;

  Status expand_header();
  Status expand_block(bool* batch_full);
  Status expand_batch();
};

}  // namespace wirepress
