// SPDX-License-Identifier: Apache-2.0
// Values that a frame holds as they are, on a stream: those of a block whose code, made with error
// feedback, is not worth storing, and those that are added to others.
#pragma once

#include <bit>

#include "engines/cuda/all_blocks.hpp"

namespace wirepress::cuda {

// Says of a code that it is none that is stored.
struct Weigh {
  static constexpr unsigned kWarps = 1;
  Report* report;
  uint64_t limit;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Report* const to = report;
    w.each(
        [=, most = limit](uint32_t lane) {
          if (lane == 0 && (to->written == 0 || to->written > most)) to->full = 1;
        },
        w.lane());
  }
};

// A kernel of a block's decoding, for where its code is not stored. How long that is its report
// says.
template <class K>
struct OfUnstored : LeastBlocks<K> {
  static constexpr unsigned kWarps = K::kWarps;
  static constexpr size_t kShared = shared_by<K>();
  K kernel;
  const Report* report;

  OfUnstored(const K& of, const Report* block) : kernel(of), report(block) {}

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (report->full == 0) return;
    K own = kernel;
    if constexpr (requires { own.task.code_size; }) own.task.code_size = report->written;
    own(w);
  }
};

// Notes what a codec launches to decode a code that may not be stored.
template <class Queue>
class UnstoredPlanner {
 public:
  UnstoredPlanner(StreamPlan* plan, const Report* report) : planner_(plan), report_(report) {}

  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    return planner_.launch(OfUnstored<K>(kernel, report_), blocks);
  }
  Status clear(std::byte* at, uint64_t size) noexcept {
    return size == 0 ? Status() : launch(Clear{at, size}, Clear::blocks(size));
  }

 private:
  Planner<Queue> planner_;
  const Report* report_;
};

// to[i] += from[i], of float32.
struct AddValues {
  static constexpr unsigned kWarps = 4;
  static constexpr uint32_t kEach = 1024;  // values of a warp
  std::byte* to;
  const std::byte* from;
  uint64_t n;
  static constexpr uint64_t blocks(uint64_t n) {
    return (n + kWarps * kEach - 1) / (kWarps * kEach);
  }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    constexpr uint32_t kTurn = 4 * kLanes;
    const uint64_t first = (w.block() * kWarps + w.warp()) * kEach;
    const uint64_t end = first + kEach < n ? first + kEach : n;
    for (uint64_t i = first; i < end; i += kTurn) {
      const auto left = static_cast<uint32_t>(end - i);
      auto sum = w.rows(to + 4 * i, left);
      const auto more = w.rows(from + 4 * i, left);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        sum[k] = w.map(
            [](uint32_t a, uint32_t b) {
              return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
            },
            sum[k], more[k]);
      w.put_rows(to + 4 * i, left, sum);
    }
  }
};

// For DeviceStreams::add, of memory that the stream's device reaches.
template <class Queue>
Status note_add(std::byte* to, const std::byte* from, size_t size, StreamPlan* plan) noexcept {
  const uint64_t n = size / 4;
  return Planner<Queue>(plan).launch(AddValues{to, from, n}, AddValues::blocks(n));
}

}  // namespace wirepress::cuda
