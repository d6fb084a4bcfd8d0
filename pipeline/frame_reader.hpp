// SPDX-License-Identifier: Apache-2.0
// Reads frames: whole ones, parts of them, and the batches of blocks that streams consist of.
#pragma once

#include <string>
#include <vector>

#include "pipeline/device_blocks.hpp"
#include "pipeline/interrupt.hpp"
#include "pipeline/pool.hpp"
#include "pipeline/settings.hpp"
#include "pipeline/stats.hpp"

namespace wirepress {

// Work of one worker when blocks are expanded.
struct ExpandItem {
  size_t block;
  size_t part;
  size_t n_parts;
};

// What becomes of expanded values: they replace what dst holds, are added, or move its words.
enum class Into { kPlace, kSum, kMove };

class FrameReader {
 public:
  FrameReader(Settings& settings, Chains& chains, ThreadPool& pool, Stats& stats,
              const Interrupt& interrupt)
      : settings_(settings), chains_(chains), pool_(pool), stats_(stats), interrupt_(interrupt) {}

  // dst lies at `place`.
  Status decompress(ConstBytes bytes, Bytes dst, size_t* written, const Place& place);
  // dst[i] += content[i], float32; dst has float32, too, or halves.
  Status decompress_add(ConstBytes bytes, Bytes dst, const Halves& halves, size_t* n_values,
                        const Place& place);
  // Moves words by the steps that a frame of integers holds (base/order.hpp).
  Status take_steps(ConstBytes bytes, Bytes words, size_t* written);
  Status decompress_range(ConstBytes bytes, uint64_t offset, Bytes dst);
  // Header and the text of its recipe.
  static Status inspect(ConstBytes bytes, Header* header, std::string* recipe);

  // What is refused: a frame that is larger than what it is expanded to, and one of values that
  // cannot be added.
  static Status check_room(uint64_t raw_size, size_t room);
  static Status check_sum(const Header& header);

  // Parts of it. The first three take a frame whose header was read.
  Status parse(ConstBytes bytes, ParsedFrame* frame);  // finds its chain and its blocks
  Status find_chain(int threads, ParsedFrame* frame);
  // Finds the chains of blocks that have recipes of their own, and takes those off the payloads.
  Status find_own_chains(int threads, ParsedFrame* frame);
  // Expands the blocks, which follow each other, into dst as `into` says. The chain was found for
  // `threads`.
  Status expand_blocks(ParsedFrame* frame, int threads, Into into, Bytes dst);

 private:
  // Halves only to be added to.
  Status expand_frame(ConstBytes bytes, Into into, Bytes dst, const Halves& halves,
                      size_t* raw_size, const Place& place);
  const char* engine_of(const ParsedFrame& frame) const;
  // The device's chains for its blocks, one behind the other; one where all have the same.
  void find_device_chains(const ParsedFrame& frame, int threads);
  // Counts what kernels expanded that the option engine does not name.
  void count_kernels(const ParsedFrame& frame) const;

  Settings& settings_;
  Chains& chains_;
  ThreadPool& pool_;
  Stats& stats_;
  const Interrupt& interrupt_;
  ParsedFrame frame_;
  std::vector<ExpandItem> items_;
  Buffer partial_;  // a block of which decompress_range needs a part
  std::vector<DeviceChain> there_;
  std::vector<Staging> staging_;  // of workers, for a device and for halves
};

}  // namespace wirepress
