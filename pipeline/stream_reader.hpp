// SPDX-License-Identifier: Apache-2.0
// Reads a frame piece by piece, in constant memory.
#pragma once

#include "pipeline/frame_reader.hpp"

namespace wirepress {

class StreamReader {
 public:
  StreamReader(Settings& settings, FrameReader& frames, Stats& stats)
      : settings_(settings), frames_(frames), stats_(stats) {}

  Status begin();
  // Takes *consumed bytes of src, gives *written bytes to dst; *done: the frame's last one, too.
  Status update(ConstBytes src, size_t* consumed, Bytes dst, size_t* written, bool* done);

 private:
  enum class Expect { kNothing, kHeader, kBlocks, kEnd };

  Status read_header_bytes();
  Status look_at_block(bool* batch_full);
  Status expand_batch();
  Status gather(ConstBytes src, size_t* used);

  Settings& settings_;
  FrameReader& frames_;
  Stats& stats_;
  Expect expect_ = Expect::kNothing;
  int threads_ = 1;  // as they were when it began
  ParsedFrame frame_;
  uint64_t index_ = 0;  // of the next block
  Buffer input_;        // header, then whole blocks of this batch and a part of the next
  size_t n_input_ = 0;
  size_t block_begin_ = 0;  // in input: where the block being gathered starts
  size_t need_ = 0;         // bytes in input that complete what is being gathered
  size_t n_blocks_ = 0;     // whole ones in input
  Buffer output_;
  size_t n_output_ = 0, taken_ = 0;
  bool last_ = false;  // the batch ends the frame
};

}  // namespace wirepress
