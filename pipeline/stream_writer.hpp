// SPDX-License-Identifier: Apache-2.0
// Writes a frame piece by piece, in constant memory.
#pragma once

#include "pipeline/frame_writer.hpp"

namespace wirepress {

class StreamWriter {
 public:
  StreamWriter(Settings& settings, FrameWriter& frames, Stats& stats)
      : settings_(settings), frames_(frames), stats_(stats) {}

  // The most that one call writes for n bytes, in the stream that is open and in one that begins
  // with the settings as they are.
  size_t bound(uint64_t n) const;
  Status begin(DType dtype, Bytes dst, size_t* written);
  Status update(ConstBytes src, Bytes dst, size_t* written);
  Status end(Bytes dst, size_t* written);

 private:
  Status write_batch(size_t n, bool end, Bytes dst, size_t* written);

  Settings& settings_;
  FrameWriter& frames_;
  Stats& stats_;
  bool active_ = false;
  bool chooses_ = false;
  BlockSettings blocks_;  // as they were when it began
  Header header_;
  ChainPointer chain_;
  FrameWriter::Choice choice_;
  uint64_t index_ = 0;  // of the next block
  Buffer pending_;
  size_t n_pending_ = 0;
  size_t batch_ = 0;  // raw bytes that are compressed together
};

}  // namespace wirepress
