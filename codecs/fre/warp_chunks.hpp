// SPDX-License-Identifier: Apache-2.0
// fre on a GPU, with a stream for every 1024 values. A warp has a stream, which knows nothing of
// the others but their sizes: streams learn their places in one pass, and are decoded side by side.
#pragma once

#include "codecs/fre/warp_stream.hpp"
#include "engines/cuda/bits.hpp"
#include "engines/cuda/copy.hpp"

namespace wirepress {
namespace {

using Rows = std::array<Row, kRows>;

constexpr uint32_t kLaneValues = 16;
constexpr uint32_t kWarpValues = kLaneValues * cuda::kLanes;
constexpr size_t kMostBits = 36;  // of a code

// The last bytes of a block and what its report says, when streams end at `end`.
template <class W>
WPR_ON_DEVICE void finish_code(W& w, const cuda::Task& task, const Shape& shape, uint64_t end,
                               bool full) {
  if (!full) cuda::copy_few(w, task.raw + shape.size * shape.n, task.code + end, shape.tail);
  w.each(
      [=, report = task.report, tail = shape.tail](uint32_t lane) {
        if (lane != 0) return;
        if (full) report->full = 1;
        if (!full) report->written = end + tail;
      },
      w.lane());
}

// A block without values has one stream, of none.
constexpr uint64_t streams_of(const Shape& shape) { return shape.ways == 0 ? 1 : shape.ways; }

// Half of a stream is in registers at a time, so that every value is read once. Its code grows in
// shared memory.
template <class Element>
struct EncodeChunks {
  static constexpr unsigned kWarps = 4;
  static constexpr size_t kRoom = kChunkValues * kMostBits / 8 + 16;
  static constexpr size_t kShared = sizeof(Rows) + kWarps * kRoom;
  cuda::Task task;
  Quantiser quantise;
  Shape shape;
  Rows table;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Rows* const rows = shared_copy<kWarps>(w, table, w.shared());
    const cuda::Places places(task.scratch);
    const uint64_t number = places.next(w), ways = streams_of(shape);
    if (number >= ways) return;
    std::byte* const stream = w.shared() + sizeof(Rows) + w.warp() * kRoom;
    const uint32_t size = (encode(w, *rows, number, stream) + 7) / 8;
    const uint64_t begin = shape.framing() + places.before(w, number, size), end = begin + size;
    const bool last = number + 1 == ways, full = end + (last ? shape.tail : 0) > task.code_size;
    if (last || full) finish_code(w, task, shape, end, full);
    if (full) return;
    cuda::copy_any(w, stream, task.code + begin, size);
    if (!last)
      w.each(
          [=, to = task.code + shape.length_size * number](uint32_t lane) {
            if (lane == 0) cuda::put(to, static_cast<uint16_t>(size));
          },
          w.lane());
  }

 private:
  // Puts the codes of a stream into words of shared memory. Returns how many bits they are.
  template <class W>
  WPR_ON_DEVICE uint32_t encode(W& w, const Rows& rows, uint64_t number, std::byte* to) const {
    const uint64_t first = shape.begin(number);
    const uint32_t n = static_cast<uint32_t>(shape.begin(number + 1) - first);
    const Quantiser q = quantise;
    uint32_t bits = 0, clear = 0, previous = 0;
    for (uint32_t from = 0; from < n; from += kWarpValues) {
      const auto words =
          w.template groups<Element>(task.raw + sizeof(Element) * (first + from), n - from);
      typename W::template Sixteen<uint32_t> own;
      WPR_UNROLL
      for (unsigned k = 0; k < kLaneValues; ++k)
        own[k] =
            w.map([=](Element word) { return q(uint32_t{word} << (32 - 8 * sizeof(Element))); },
                  words[k]);
      const auto before =
          w.map([=](uint32_t lane, uint32_t last) { return lane == 0 ? previous : last; }, w.lane(),
                w.up(own[kLaneValues - 1], 1));
      previous = w.from(own[kLaneValues - 1], cuda::kLanes - 1);
      const auto sizes = w.of_groups(
          [=, &rows](const uint32_t* x, uint32_t lane, uint32_t p) {
            uint32_t sum = 0;
            each_code(rows, x, p, left(n - from, lane),
                      [&](const Row& row, uint32_t) { sum += row.size; });
            return sum;
          },
          own, w.lane(), before);
      uint32_t all = 0;
      const auto in_half = cuda::sums_before(w, sizes, &all);
      clear = clear_words(w, to, clear, (bits + all) / 32 + 1);
      w.of_groups(
          [=, &rows](const uint32_t* x, uint32_t lane, uint32_t p, uint32_t at) {
            cuda::LaneBits<W> out(to, bits + at);
            each_code(rows, x, p, left(n - from, lane),
                      [&](const Row& row, uint32_t value) { out.put(code(row, value), row.size); });
            out.finish();
            return 0;
          },
          own, w.lane(), before, in_half);
      bits += all;
    }
    w.settle();
    return bits;
  }

  // Values that a lane has of n.
  static WPR_ON_DEVICE uint32_t left(uint32_t n, uint32_t lane) {
    return n > kLaneValues * lane ? n - kLaneValues * lane : 0;
  }

  template <class Function>
  static WPR_ON_DEVICE void each_code(const Rows& rows, const uint32_t* x, uint32_t previous,
                                      uint32_t n, Function function) {
    WPR_UNROLL
    for (uint32_t k = 0; k < kLaneValues; ++k) {
      if (k >= n) continue;
      const int d = static_cast<int>(exponent(x[k])) - static_cast<int>(exponent(previous));
      function(rows[case_of(x[k], previous, difference_row(d))], x[k]);
      previous = x[k];
    }
  }

  // Clears words from `from` up to but not including `to`, and returns that.
  template <class W>
  static WPR_ON_DEVICE uint32_t clear_words(W& w, std::byte* words, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i += cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane < to) cuda::put(words + 4 * (i + lane), uint32_t{0});
          },
          w.lane());
    w.settle();
    return to;
  }
};

template <class Element>
struct DecodeChunks {
  static constexpr unsigned kWarps = 4;
  static constexpr size_t kShared = sizeof(Table) + kWarps * kWindowSize;
  cuda::Task task;
  Shape shape;
  Table table;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Table* const rows = shared_copy<kWarps>(w, table, w.shared());
    const cuda::Places places(task.scratch);
    const uint64_t number = places.next(w), ways = streams_of(shape);
    if (number >= ways) return;
    const uint64_t codes = task.code_size - shape.tail;
    const bool last = number + 1 == ways;
    if (last) cuda::copy_few(w, task.code + codes, task.raw + shape.size * shape.n, shape.tail);
    if (shape.n == 0) return;
    // The last stream takes the rest, and none asks for its size.
    const uint64_t length = last ? 0 : cuda::get<uint16_t>(task.code + shape.length_size * number);
    const uint64_t begin = shape.framing() + places.before(w, number, length);
    const uint64_t rest = begin > codes ? 0 : codes - begin, first = shape.begin(number);
    if (begin > codes || length > rest ||
        !decode_stream<Element>(w, *rows, task.code + begin, last ? rest : length,
                                task.raw + shape.size * first, shape.begin(number + 1) - first,
                                w.shared() + sizeof(Table) + w.warp() * kWindowSize))
      w.at_most(&task.report->first_bad, number);
  }
};

}  // namespace
}  // namespace wirepress
