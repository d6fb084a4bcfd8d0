// SPDX-License-Identifier: Apache-2.0
// What stands behind a wpr_ctx: one set of settings, memory and threads for all that it does.
#pragma once

#include "pipeline/stream_reader.hpp"
#include "pipeline/stream_writer.hpp"

namespace wirepress {

struct Context {
  // The frame of the sum of two frames' contents.
  Status add(ConstBytes a, ConstBytes b, Bytes dst, size_t* written);

  Settings settings;
  Stats stats;
  Chains chains;
  ThreadPool pool;
  FrameWriter writer{settings, chains, pool, stats};
  FrameReader reader{settings, chains, pool, stats};
  StreamWriter stream_writer{settings, writer, stats};
  StreamReader stream_reader{settings, reader, stats};
};

}  // namespace wirepress
