// SPDX-License-Identifier: Apache-2.0
// fre on a GPU. Encoding: a lane has 16 values, whose codes know nothing of the others' but their
// sizes; bits grow in scratch memory, a stream for each way, and a second launch packs them.
// Decoding: a warp has a stream, and each lane 128 bits of it. Where its first code begins, it
// learns from the lane before it, and guesses until then; what codes do to the value before them is
// summed up, so that a lane's values can be written when the ones before are known. Long because
// both ways share the table and how streams are cut.
#pragma once

#include "codecs/fre/code.hpp"
#include "engines/cuda/bits.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress {
namespace {

// The table in shared memory, by one warp.
template <class W>
WPR_ON_DEVICE const Table* shared_table(W& w, const Table& table, std::byte* to) {
  static_assert(sizeof(Table) % 4 == 0);
  constexpr uint32_t kWords = sizeof(Table) / 4;
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(&table);
  for (uint32_t i = 0; i < kWords; i += cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < kWords) cuda::put(to + 4 * (i + lane), words[i + lane]);
        },
        w.lane());
  w.settle();
  return reinterpret_cast<const Table*>(to);
}

// ---- encoder --------------------------------------------------------------------------------

constexpr uint32_t kLaneValues = 16;
constexpr uint32_t kWarpValues = kLaneValues * cuda::kLanes;

// Scratch memory of an encoder, cleared: places of chunks, bits of each stream, and the streams.
struct Streams {
  static constexpr size_t kMostBits = 36;  // of a code
  size_t chunks, room;                     // of a stream
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
  static constexpr size_t kShared = sizeof(Table);
  cuda::Task task;
  Quantiser quantise;
  Shape shape;
  Table table;

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
    const Table* const rows = shared_table(w, table, w.shared());
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
        function(rows->row[case_of(own, previous, difference_row(d))], own);
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
    if (way == 0 && warp == 0) finish(w, all, full);
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
    std::byte* const length = task.code + kLengthSize * way;
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

  template <class W>
  WPR_ON_DEVICE void finish(W& w, uint64_t begin, bool full) const {
    const std::byte* const from = task.raw + shape.size * shape.n;
    std::byte* const to = task.code + begin;
    cuda::Report* const report = task.report;
    w.each(
        [=, tail = shape.tail](uint32_t lane) {
          if (!full && lane < tail) to[lane] = from[lane];
          if (lane == 0 && full) report->full = 1;
          if (lane == 0 && !full) report->written = begin + tail;
        },
        w.lane());
  }
};

// ---- decoder --------------------------------------------------------------------------------

constexpr uint32_t kLaneBits = 128;
constexpr uint32_t kWindowBits = kLaneBits * cuda::kLanes;
constexpr uint32_t kWindowWords = kWindowBits / 32 + 3;  // with what the last code may reach

// The bits of a window in shared memory: what follows bit `at`.
static WPR_ON_DEVICE uint64_t bits_after(const std::byte* words, uint32_t at) {
  const std::byte* const from = words + at / 32 * 4;
  const uint64_t low = cuda::get<uint32_t>(from) | uint64_t{cuda::get<uint32_t>(from + 4)} << 32;
  const uint32_t skip = at % 32;
  return skip == 0 ? low : low >> skip | uint64_t{cuda::get<uint32_t>(from + 8)} << (64 - skip);
}
static WPR_ON_DEVICE const Row& row_at(const Table& table, uint64_t bits) {
  return table.row[table.step[bits & kPeek].row];
}

// What codes do to the value before them: ((value & keep) + add) | sign, but nothing where keep is
// all ones.
struct Effect {
  uint32_t keep = ~0u, add = 0, sign = 0;
  constexpr void then(const Row& row, uint32_t payload) {
    if (row.keep == ~0u) return;  // equal
    if (row.keep == 0) {
      keep = 0;
      add = row.add + (payload & row.take);
    } else {
      keep = keep == ~0u ? kInfinity : keep;
      add = (add & ~kFraction) + row.add + (payload & row.take);
    }
    sign = payload << row.turn & kSign;
  }
  static constexpr uint32_t of(uint32_t keep, uint32_t add, uint32_t sign, uint32_t value) {
    return keep == ~0u ? value : ((value & keep) + add) | sign;
  }
};

template <class Element>
struct DecodeFre {
  static constexpr unsigned kWarps = 1;
  static constexpr size_t kShared = sizeof(Table) + 4 * kWindowWords;
  cuda::Task task;
  Shape shape;
  Table table;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t way = w.block();
    if (way == 0) {
      std::byte* const to = task.raw + shape.size * shape.n;
      const std::byte* const from = task.code + task.code_size - shape.tail;
      w.each(
          [=, tail = shape.tail](uint32_t lane) {
            if (lane < tail) to[lane] = from[lane];
          },
          w.lane());
      if (shape.n == 0) return;
    }
    uint64_t begin, size;
    if (!find_stream(way, &begin, &size) || !decode_stream(w, way, begin, size))
      w.at_most(&task.report->first_bad, way);
  }

 private:
  // As cut_streams().
  WPR_ON_DEVICE bool find_stream(uint64_t way, uint64_t* begin, uint64_t* size) const {
    const uint64_t end = task.code_size - shape.tail;
    *begin = shape.framing();
    for (uint64_t i = 0;; ++i) {
      *size = i + 1 < shape.ways ? uint64_t{cuda::get<uint32_t>(task.code + kLengthSize * i)}
                                 : end - *begin;
      if (*size > end - *begin) return false;
      if (i == way) return true;
      *begin += *size;
    }
  }

  template <class W>
  WPR_ON_DEVICE bool decode_stream(W& w, uint64_t way, uint64_t begin, uint64_t size) const {
    const Table& rows = *shared_table(w, table, w.shared());
    std::byte* const words = w.shared() + sizeof(Table);
    const uint64_t n = shape.begin(way + 1) - shape.begin(way);
    std::byte* const dst = task.raw + shape.size * shape.begin(way);
    const uint32_t half = table.half;
    uint64_t at = 0;  // bits that are decoded
    uint32_t previous = 0;
    uint32_t wrong = 0;
    for (uint64_t done = 0; done < n;) {
      const uint64_t base = at / 32 * 32;
      load_window(w, begin + base / 8, begin + size, words);
      const uint64_t rest = base < 8 * size ? 8 * size - base : 0;
      const uint32_t valid = rest < kWindowBits ? static_cast<uint32_t>(rest) : kWindowBits;
      const auto starts = find_starts(w, rows, words, static_cast<uint32_t>(at - base), valid);

      // What the codes of a lane do, together.
      const auto count = w.map(
          [=, &rows](uint32_t lane, uint32_t start) {
            uint32_t codes = 0;
            for (uint32_t i = start; i < (lane + 1) * kLaneBits; ++codes)
              i += rows.step[bits_after(words, i) & kPeek].size;
            return codes;
          },
          w.lane(), starts);
      const auto effect = w.map(
          [=, &rows](uint32_t lane, uint32_t start) {
            Effect all;
            for (uint32_t i = start; i < (lane + 1) * kLaneBits;) {
              const uint64_t bits = bits_after(words, i);
              const Row& row = row_at(rows, bits);
              all.then(row, payload_of(row, bits));
              i += row.size;
            }
            return all;
          },
          w.lane(), starts);
      const auto keep = w.map([](const Effect& e) { return e.keep; }, effect);
      const auto add = w.map([](const Effect& e) { return e.add; }, effect);
      const auto sign = w.map([](const Effect& e) { return e.sign; }, effect);
      uint32_t codes = 0;
      const auto before = cuda::sums_before(w, count, &codes);
      auto value = w.all(previous);
      for (unsigned i = 0; i + 1 < cuda::kLanes; ++i) {
        previous = Effect::of(w.from(keep, i), w.from(add, i), w.from(sign, i), previous);
        const uint32_t next = previous;
        value = w.map([=](uint32_t own, uint32_t lane) { return lane == i + 1 ? next : own; },
                      value, w.lane());
      }
      previous = Effect::of(w.from(keep, cuda::kLanes - 1), w.from(add, cuda::kLanes - 1),
                            w.from(sign, cuda::kLanes - 1), previous);

      // The values that there are; where the last of them ends in this window.
      const uint32_t left = n - done < codes ? static_cast<uint32_t>(n - done) : codes;
      const auto ends = w.map(
          [=, &rows](uint32_t lane, uint32_t start, uint32_t first, uint32_t own) {
            uint32_t i = start, p = own, k = first;
            uint64_t beyond = 0;
            for (; i < (lane + 1) * kLaneBits && k < left; ++k) {
              const uint64_t bits = bits_after(words, i);
              const Row& row = row_at(rows, bits);
              p = decoded<Element>(row, payload_of(row, bits), p, &beyond);
              const uint32_t word = half != 0 ? with_half(p, half) : p;
              cuda::put(dst + sizeof(Element) * (done + k),
                        static_cast<Element>(word >> (32 - 8 * sizeof(Element))));
              i += row.size;
            }
            return uint64_t{beyond >> 32 != 0} << 32 | (k > first ? i : 0);
          },
          w.lane(), starts, before, value);
      wrong |= w.ballot(w.map([](uint64_t end) { return end >> 32 != 0; }, ends));
      at = base + w.most(w.map([](uint64_t end) { return static_cast<uint32_t>(end); }, ends));
      done += left;
      w.settle();
    }
    const uint64_t bits = 8 * size, left = bits - at;
    if (wrong != 0 || at > bits || left >= 8) return false;
    return left == 0 || std::to_integer<unsigned>(task.code[begin + size - 1]) >> (8 - left) == 0;
  }

  // The words of a window, from any byte on; zeros behind the stream.
  template <class W>
  WPR_ON_DEVICE void load_window(W& w, uint64_t from, uint64_t end, std::byte* words) const {
    const std::byte* const code = task.code;
    for (uint32_t i = 0; i < kWindowWords; i += cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane >= kWindowWords) return;
            const uint64_t first = from + 4 * (i + lane);
            uint32_t word = 0;
            for (uint32_t k = 0; k < 4; ++k)
              if (first + k < end) word |= std::to_integer<uint32_t>(code[first + k]) << 8 * k;
            cuda::put(words + 4 * (i + lane), word);
          },
          w.lane());
    w.settle();
  }

  // Bits of the window at which the first code of each lane begins. A code that is read from the
  // wrong bit on mostly ends where a right one does, soon: few rounds. Not among the zeros behind
  // the `valid` bits, whose codes have one size: there each lane begins with its own bits.
  template <class W>
  static WPR_ON_DEVICE auto find_starts(W& w, const Table& rows, const std::byte* words,
                                        uint32_t first, uint32_t valid) {
    auto starts =
        w.map([=](uint32_t lane) { return lane == 0 ? first : lane * kLaneBits; }, w.lane());
    for (unsigned round = 0; round < cuda::kLanes; ++round) {
      const auto ends = w.map(
          [=, &rows](uint32_t lane, uint32_t start) {
            const uint32_t after = (lane + 1) * kLaneBits, last = after < valid ? after : valid;
            uint32_t i = start;
            while (i < last) i += rows.step[bits_after(words, i) & kPeek].size;
            return i < after ? after : i;
          },
          w.lane(), starts);
      const auto next = w.map([=](uint32_t lane, uint32_t end) { return lane == 0 ? first : end; },
                              w.lane(), w.up(ends, 1));
      const uint32_t changed =
          w.ballot(w.map([](uint32_t a, uint32_t b) { return a != b; }, starts, next));
      if (changed == 0) break;
      starts = next;
    }
    return starts;
  }
};

// For cuda::KernelOf.
class FreWarps {
 public:
  static constexpr const char* kName = "fre";
  static constexpr bool kGradients = false;

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
    return Streams(shape.n, shape.ways).size(shape.ways);
  }
  static size_t decode_scratch(const Args&, size_t) { return 0; }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const Shape shape(args, task.raw_size);
    const Streams streams(shape.n, shape.ways);
    if (shape.n > 0)
      WPR_TRY(with_element(shape, [&]<class Element>() {
        return device.launch(EncodeFre<Element>{task, Quantiser(args), shape, table_of(args)},
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
      return device.launch(DecodeFre<Element>{task, shape, table_of(args)},
                           shape.n > 0 ? shape.ways : 1);
    });
  }

 private:
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
