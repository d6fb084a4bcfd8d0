// SPDX-License-Identifier: Apache-2.0
// fre on a GPU, with one or four streams a block. Encoding: a lane has 16 values, whose codes know
// nothing of the others' but their sizes; bits grow in scratch memory, a stream for each way, and a
// second launch packs them. Decoding: a warp has a stream (warp_stream.hpp). Streams of 1024 values
// stand in warp_chunks.hpp.
#pragma once

#include "codecs/fre/warp_chunks.hpp"
#include "codecs/fre/warp_stream.hpp"
#include "engines/cuda/bits.hpp"

namespace wirepress {
namespace {

// ---- encoder --------------------------------------------------------------------------------

// Scratch memory of an encoder, cleared: places of chunks, bits of each stream, and the streams.
struct Streams {
  size_t chunks, room;  // of a stream
  constexpr Streams(size_t n, size_t ways)
      : chunks(((n + ways - 1) / ways + kWarpValues - 1) / kWarpValues),
        room(chunks * kWarpValues * kMostBits / 8 + 8) {}
  constexpr size_t places_at(size_t way) const { return way * cuda::Places::size(chunks); }
  constexpr size_t bits_at(size_t way, size_t ways) const { return places_at(ways) + 8 * way; }
  constexpr size_t stream_at(size_t way, size_t ways) const {
    return bits_at(ways, ways) + way * room;
  }
  constexpr size_t size(size_t ways) const { return stream_at(ways, ways); }
};

template <class Element>
struct EncodeFre {
  static constexpr unsigned kWarps = 1;
  static constexpr size_t kShared = sizeof(Rows);
  cuda::Task task;
  Quantiser quantise;
  Shape shape;
  Rows table;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Streams streams(shape.n, shape.ways);
    // Chunks of a way that has few values may be none.
    const uint64_t taken = cuda::Places(task.scratch).next(w), way = taken / streams.chunks;
    const uint64_t number = taken % streams.chunks;
    const cuda::Places places(task.scratch + streams.places_at(way));
    const uint64_t begin = shape.begin(way), end = shape.begin(way + 1);
    const uint64_t first = begin + number * kWarpValues;
    const uint32_t n = first >= end                ? 0
                       : end - first < kWarpValues ? static_cast<uint32_t>(end - first)
                                                   : kWarpValues;
    const Rows* const rows = shared_copy<kWarps>(w, table, w.shared());
    const std::byte* const src = task.raw;
    const Quantiser q = quantise;
    const auto each_code = [=](uint32_t lane, auto function) {
      if (kLaneValues * lane >= n) return;
      const uint64_t from = first + kLaneValues * lane;
      const uint32_t left = n - kLaneValues * lane;
      uint32_t previous = from > begin ? q(word(src, from - 1)) : 0;
      for (uint32_t k = 0; k < kLaneValues && k < left; ++k) {
        const uint32_t own = q(word(src, from + k));
        const int d = static_cast<int>(exponent(own)) - static_cast<int>(exponent(previous));
        function((*rows)[case_of(own, previous, difference_row(d))], own);
        previous = own;
      }
    };
    const auto sizes = w.map(
        [=](uint32_t lane) {
          uint32_t bits = 0;
          each_code(lane, [&](const Row& row, uint32_t) { bits += row.size; });
          return bits;
        },
        w.lane());
    uint32_t bits = 0;
    const auto in_chunk = cuda::sums_before(w, sizes, &bits);
    const uint64_t before = places.before(w, number, bits);
    std::byte* const stream = task.scratch + streams.stream_at(way, shape.ways);
    w.each(
        [=](uint32_t lane, uint32_t own) {
          cuda::LaneBits<W> out(stream, before + own);
          each_code(lane, [&](const Row& row, uint32_t x) { out.put(code(row, x), row.size); });
          out.finish();
        },
        w.lane(), in_chunk);
    if (number + 1 == streams.chunks)
      w.each(
          [=, at = task.scratch + streams.bits_at(way, shape.ways)](uint32_t lane) {
            if (lane == 0) cuda::put(at, before + bits);
          },
          w.lane());
  }

 private:
  static WPR_ON_DEVICE uint32_t word(const std::byte* src, uint64_t i) {
    return uint32_t{cuda::get<Element>(src + sizeof(Element) * i)} << (32 - 8 * sizeof(Element));
  }
};

// Sizes, streams and last bytes; blocks_each blocks a stream, 4 bytes a lane.
struct PackFre {
  static constexpr unsigned kWarps = 4;
  cuda::Task task;
  Shape shape;
  uint64_t blocks_each;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t way = w.block() / blocks_each,
                   warp = w.block() % blocks_each * kWarps + w.warp();
    uint64_t begin = 0, all = shape.framing();  // bytes of the code
    for (uint64_t i = 0; shape.n > 0 && i < shape.ways; ++i) {
      begin = i == way ? all : begin;
      all += stream_size(i);
    }
    const bool full = all + shape.tail > task.code_size;
    if (way == 0 && warp == 0) finish_code(w, task, shape, all, full);
    if (full || shape.n == 0) return;
    const uint64_t size = stream_size(way), first = 4 * cuda::kLanes * warp;
    std::byte* const to = task.code + begin;
    const std::byte* const from =
        task.scratch + Streams(shape.n, shape.ways).stream_at(way, shape.ways);
    w.each(
        [=](uint32_t lane) {
          const uint64_t at = first + 4 * lane;
          for (uint64_t i = at; i < at + 4 && i < size; ++i) to[i] = from[i];
        },
        w.lane());
    std::byte* const length = task.code + shape.length_size * way;
    if (warp == 0 && way + 1 < shape.ways)
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) cuda::put(length, static_cast<uint32_t>(size));
          },
          w.lane());
  }

 private:
  WPR_ON_DEVICE uint64_t stream_size(uint64_t way) const {
    const Streams streams(shape.n, shape.ways);
    return (cuda::get<uint64_t>(task.scratch + streams.bits_at(way, shape.ways)) + 7) / 8;
  }
};

// ---- decoder --------------------------------------------------------------------------------

template <class Element>
struct DecodeFre {
  static constexpr unsigned kWarps = 1;
  static constexpr size_t kShared = sizeof(Table) + kWindowSize;
  cuda::Task task;
  Shape shape;
  Table table;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t way = w.block();
    if (way == 0) {
      cuda::copy_few(w, task.code + task.code_size - shape.tail, task.raw + shape.size * shape.n,
                     shape.tail);
      if (shape.n == 0) return;
    }
    const Table* const rows = shared_copy<kWarps>(w, table, w.shared());
    const uint64_t first = shape.begin(way), n = shape.begin(way + 1) - first;
    uint64_t begin, size;
    if (!find_stream(way, &begin, &size) ||
        !decode_stream<Element>(w, *rows, task.code + begin, size, task.raw + shape.size * first, n,
                                w.shared() + sizeof(Table)))
      w.at_most(&task.report->first_bad, way);
  }

 private:
  // As Cutter.
  WPR_ON_DEVICE bool find_stream(uint64_t way, uint64_t* begin, uint64_t* size) const {
    const uint64_t end = task.code_size - shape.tail;
    *begin = shape.framing();
    for (uint64_t i = 0;; ++i) {
      *size = i + 1 < shape.ways ? uint64_t{cuda::get<uint32_t>(task.code + shape.length_size * i)}
                                 : end - *begin;
      if (*size > end - *begin) return false;
      if (i == way) return true;
      *begin += *size;
    }
  }
};

// For cuda::KernelOf.
class FreWarps {
 public:
  static constexpr const char* kName = "fre";
  static constexpr bool kGradients = false, kFeedbackInParts = true;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args& args, size_t code_size, size_t size) {
    const Shape shape(args, size);
    if (code_size < shape.framing() + shape.tail || code_size > UINT32_MAX ||
        (shape.n == 0 && code_size != shape.tail))
      return fail(Code::kCorrupt, "fre: %zu bytes cannot hold %zu values and %zu bytes", code_size,
                  shape.n, shape.tail);
    return {};
  }
  static size_t scratch(const Args& args, size_t size) {
    const Shape shape(args, size);
    return chunked(args) ? cuda::Places::size(streams_of(shape))
                         : Streams(shape.n, shape.ways).size(shape.ways);
  }
  static size_t decode_scratch(const Args& args, size_t size) {
    return chunked(args) ? scratch(args, size) : 0;
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const Shape shape(args, task.raw_size);
    const Rows rows = table_of(args).row;
    if (chunked(args))
      return with_element(shape, [&]<class Element>() {
        return launch(device, EncodeChunks<Element>{task, Quantiser(args), shape, rows});
      });
    const Streams streams(shape.n, shape.ways);
    if (shape.n > 0)
      WPR_TRY(with_element(shape, [&]<class Element>() {
        return device.launch(EncodeFre<Element>{task, Quantiser(args), shape, rows},
                             streams.chunks * shape.ways);
      }));
    const size_t words = (std::min(streams.room, task.code_size) + 3) / 4;
    const size_t each = cuda::kLanes * PackFre::kWarps;
    const uint64_t blocks_each = std::max<size_t>(1, (words + each - 1) / each);
    return device.launch(PackFre{task, shape, blocks_each}, blocks_each * shape.ways);
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    const Shape shape(args, task.raw_size);
    return with_element(shape, [&]<class Element>() {
      if (chunked(args)) return launch(device, DecodeChunks<Element>{task, shape, table_of(args)});
      return device.launch(DecodeFre<Element>{task, shape, table_of(args)},
                           shape.n > 0 ? shape.ways : 1);
    });
  }

 private:
  static bool chunked(const Args& args) { return args.value[kWays] == kChunks; }
  // A warp for each stream.
  template <class K, class D>
  static Status launch(D& device, const K& kernel) {
    return device.launch(kernel, (streams_of(kernel.shape) + K::kWarps - 1) / K::kWarps);
  }
  template <class Function>
  static Status with_element(const Shape& shape, Function function) {
    return shape.size == 2 ? function.template operator()<uint16_t>()
                           : function.template operator()<uint32_t>();
  }
  static Table table_of(const Args& args) {
    Table table;
    make_table(args, &table);
    return table;
  }
};

}  // namespace
}  // namespace wirepress
