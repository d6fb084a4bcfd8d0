// SPDX-License-Identifier: Apache-2.0
// The sparse gradient codecs on a GPU. The value of a rank is found byte by byte, from histograms;
// what is sent is listed in scratch memory, blocks telling each other how much comes before; then
// its number is known, and with it where the parts of the payload stand. Long because both ways and
// their launches share scratch memory.
#pragma once

#include "codecs/common/sparse/layout.hpp"
#include "codecs/common/sparse/sparse.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::sparse {

constexpr uint32_t kTurn = 128;    // values that a warp has at once
constexpr uint32_t kChunk = 1024;  // values that a warp lists
constexpr unsigned kWarpsOfBlock = 4;
constexpr size_t kMostValues = (size_t{1} << 31) - 1;
constexpr unsigned kMostBlocks = 2048;  // of what can go on in steps

constexpr uint32_t magnitude(uint32_t word) { return canonical(word) & ~kSign; }

// A magnitude of 31 bits in four digits, the uppermost first.
constexpr unsigned kDigits = 4;
constexpr unsigned kBins = 256;
constexpr unsigned digit_bits(unsigned i) { return i + 1 < kDigits ? 8 : 7; }
constexpr unsigned digit_shift(unsigned i) { return i + 1 < kDigits ? 23 - 8 * i : 0; }

// The largest digits of the value of a rank, as far as they are known.
struct Found {
  uint32_t digits;   // the upper ones
  uint32_t greater;  // values above all that begin so
};

// What the launches of a task leave each other in scratch memory, cleared.
struct Board {
  uint32_t bins[2][kDigits][kBins];  // of the sample, of the block
  Found found[2][kDigits];
  uint32_t cut;     // all above it are sent ...
  uint32_t budget;  // ... and so many that are as large, with the lowest indices
  uint64_t count;   // values to send
};

struct Scratch {
  size_t entries;  // that there is room for
  size_t places_at, board_at, sample_at, positions_at, words_at, size;
  constexpr Scratch(size_t chunks, size_t sample, size_t n_entries)
      : entries(n_entries),
        places_at(0),
        board_at(aligned(cuda::Places::size(chunks))),
        sample_at(board_at + aligned(sizeof(Board))),
        positions_at(sample_at + aligned(4 * sample)),
        words_at(positions_at + aligned(4 * entries)),
        size(words_at + 4 * entries) {}
  static constexpr size_t aligned(size_t size) { return (size + 15) / 16 * 16; }
};

// Values i to i + 31 of a step over n: function(i + lane) for those that are there.
template <unsigned kWarps, class W, class Function>
WPR_ON_DEVICE void each_index(W& w, uint64_t n, Function function) {
  const uint64_t step = w.blocks() * kWarps * cuda::kLanes;
  for (uint64_t i = (w.block() * kWarps + w.warp()) * cuda::kLanes; i < n; i += step)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < n) function(i + lane);
        },
        w.lane());
}

// ---- what is sent -----------------------------------------------------------------------------

// residual = src + residual.
struct AddResidual {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const std::byte* const src = task.raw;
    std::byte* const rest = task.residual;
    each_index<kWarps>(w, task.raw_size / 4, [=](uint64_t i) {
      cuda::put(rest + 4 * i, cuda::get<float>(src + 4 * i) + cuda::get<float>(rest + 4 * i));
    });
  }
};

struct TakeSample {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  const std::byte* words;
  std::byte* sample;
  uint64_t n, values, seed, first;  // of the sample, of the block

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const TakeSample own = *this;
    each_index<kWarps>(w, n, [=](uint64_t i) {
      const uint64_t from =
          run_begin(own.seed, own.first, own.values / kRun, own.n / kRun, i / kRun) + i % kRun;
      cuda::put(own.sample + 4 * i, cuda::get<uint32_t>(own.words + 4 * from));
    });
  }
};

// Counts one digit of the words that begin with the digits before it.
struct CountDigit {
  static constexpr unsigned kWarps = 8;
  static constexpr size_t kShared = 4 * kBins;
  const std::byte* words;
  uint64_t n;
  std::byte* board;
  unsigned of, digit;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Board* const own = reinterpret_cast<Board*>(board);
    std::byte* const bins = w.shared();
    w.each([=, warp = w.warp()](
               uint32_t lane) { cuda::put<uint32_t>(bins + 4 * (cuda::kLanes * warp + lane), 0); },
           w.lane());
    w.sync();
    const uint32_t before = digit == 0 ? 0 : own->found[of][digit - 1].digits;
    const unsigned shift = digit_shift(digit), bits = digit_bits(digit);
    const uint64_t step = w.blocks() * kWarps * kTurn;
    for (uint64_t i = (w.block() * kWarps + w.warp()) * kTurn; i < n; i += step) {
      const uint32_t left = n - i < kTurn ? static_cast<uint32_t>(n - i) : kTurn;
      const auto word = w.rows(words + 4 * i, left);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        w.each(
            [=](uint32_t x, uint32_t lane) {
              const uint32_t upper = magnitude(x) >> shift;
              if (cuda::kLanes * k + lane < left && upper >> bits == before)
                W::add_to(bins + 4 * (upper & ((1u << bits) - 1)), 1);
            },
            word[k], w.lane());
    }
    w.sync();
    std::byte* const to = reinterpret_cast<std::byte*>(own->bins[of][digit]);
    w.each(
        [=, warp = w.warp()](uint32_t lane) {
          const uint32_t bin = 4 * (cuda::kLanes * warp + lane),
                         count = cuda::get<uint32_t>(bins + bin);
          if (count > 0) W::add_to(to + bin, count);
        },
        w.lane());
  }
};

// Finds the digit in which the value of `rank` lies, the largest having rank 1. By one warp: a lane
// has eight bins, the first one the uppermost.
struct PickDigit {
  static constexpr unsigned kWarps = 1;
  std::byte* board;
  uint64_t rank;
  unsigned of, digit;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Board* const own = reinterpret_cast<Board*>(board);
    const uint32_t* const bins = own->bins[of][digit];
    Found* const to = &own->found[of][digit];
    const Found before = digit == 0 ? Found{} : own->found[of][digit - 1];
    const uint32_t wanted = static_cast<uint32_t>(rank) - before.greater;
    const unsigned bits = digit_bits(digit);
    const auto sum = w.map(
        [=](uint32_t lane) {
          uint32_t all = 0;
          for (uint32_t k = 0; k < 8; ++k) all += bins[kBins - 1 - (8 * lane + k)];
          return all;
        },
        w.lane());
    uint32_t all = 0;
    w.each(
        [=](uint32_t lane, uint32_t above, uint32_t here) {
          if (above >= wanted || above + here < wanted) return;
          uint32_t bin = kBins - 1 - 8 * lane;
          for (; above + bins[bin] < wanted; --bin) above += bins[bin];
          *to = {before.digits << bits | bin, before.greater + above};
        },
        w.lane(), cuda::sums_before(w, sum, &all), sum);
  }
};

// Says what is sent: all that reach the threshold, or the k largest of them.
struct Decide {
  static constexpr unsigned kWarps = 1;
  std::byte* board;
  uint64_t k;
  bool sampled, limited;  // that of the sample was found, and that of the block

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Decide own = *this;
    w.each(
        [=](uint32_t lane) {
          if (lane != 0) return;
          Board* const to = reinterpret_cast<Board*>(own.board);
          uint32_t threshold = own.sampled ? to->found[0][kDigits - 1].digits : 1;
          threshold = threshold < 1 ? 1 : threshold > kInfinity ? kInfinity : threshold;
          const Found last = to->found[1][kDigits - 1];
          const bool few = own.limited && last.digits >= threshold;
          to->cut = few ? last.digits : threshold;
          to->budget = few ? static_cast<uint32_t>(own.k) - last.greater : ~0u;
        },
        w.lane());
  }
};

// Lists positions and words of what is sent, in order. The residual loses what is sent or is not
// finite.
template <bool kFeedback>
struct List {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  static constexpr unsigned kLeastBlocks = 8;  // or ptxas spills to have 10
  std::byte* words;                            // with feedback, the residual
  uint64_t n;
  std::byte* scratch;
  Scratch at;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const cuda::Places places(scratch + at.places_at);
    const uint64_t number = places.next(w), begin = number * kChunk;
    if (begin >= n) return;
    Board* const board = reinterpret_cast<Board*>(scratch + at.board_at);
    const uint32_t size = n - begin < kChunk ? static_cast<uint32_t>(n - begin) : kChunk;
    const uint32_t cut = board->cut;
    const uint64_t budget = board->budget;
    uint64_t above = 0, equal = 0;
    for (uint32_t i = 0; i < size; i += kTurn) {
      const auto word = w.rows(words + 4 * (begin + i), size - i);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        above += popcount(w.ballot(w.map([=](uint32_t x) { return magnitude(x) > cut; }, word[k])));
        equal +=
            popcount(w.ballot(w.map([=](uint32_t x) { return magnitude(x) == cut; }, word[k])));
      }
    }
    const uint64_t before = places.before(w, number, above | equal << 31);
    uint64_t seen = before >> 31;  // as large as the cut
    const uint64_t above_before = before & kMostValues;
    uint64_t next = above_before + (seen < budget ? seen : budget);
    std::byte* const positions = scratch + at.positions_at;
    std::byte* const listed = scratch + at.words_at;
    const uint64_t room = at.entries;
    for (uint32_t i = 0; i < size; i += kTurn) {
      auto word = w.rows(words + 4 * (begin + i), size - i);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const uint32_t as_large =
            w.ballot(w.map([=](uint32_t x) { return magnitude(x) == cut; }, word[k]));
        const uint64_t left = seen < budget ? budget - seen : 0, first = begin + i + 32 * k;
        const auto taken = w.map(
            [=](uint32_t x, uint32_t lane) {
              const uint32_t size_of = magnitude(x);
              return size_of > cut || (size_of == cut && popcount(as_large & below(lane)) < left);
            },
            word[k], w.lane());
        const uint32_t set = w.ballot(taken);
        const uint64_t to = next;
        word[k] = w.map(
            [=](uint32_t x, uint32_t lane, bool sent) {
              const uint64_t entry = to + popcount(set & below(lane));
              if (sent && entry < room) {
                cuda::put(positions + 4 * entry, static_cast<uint32_t>(first + lane));
                cuda::put(listed + 4 * entry, canonical(x));
              }
              return sent || magnitude(x) >= kInfinity ? 0 : x;
            },
            word[k], w.lane(), taken);
        next += popcount(set);
        seen += popcount(as_large);
      }
      if constexpr (kFeedback) w.put_rows(words + 4 * (begin + i), size - i, word);
    }
    if (begin + size < n) return;
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) board->count = next < room ? next : room;
        },
        w.lane());
  }

 private:
  static constexpr uint32_t popcount(uint32_t bits) {
    return static_cast<uint32_t>(std::popcount(bits));
  }
  static constexpr uint32_t below(uint32_t lane) { return (1u << lane) - 1; }
};

// ---- the payload ------------------------------------------------------------------------------

// The bits of the high parts in byte `at`: bit floor(p / 2^w) + i for each position p, number i.
static WPR_ON_DEVICE uint32_t high_byte(const std::byte* positions, const Layout& layout,
                                        uint64_t at) {
  const auto bit_of = [=](uint64_t i) {
    return (uint64_t{cuda::get<uint32_t>(positions + 4 * i)} >> layout.width) + i;
  };
  uint64_t low = 0, high = layout.count;  // the first one whose bit is not before this byte
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (bit_of(middle) < 8 * at)
      low = middle + 1;
    else
      high = middle;
  }
  uint32_t bits = 0;
  for (; low < layout.count && bit_of(low) < 8 * (at + 1); ++low)
    bits |= 1u << (bit_of(low) - 8 * at);
  return bits;
}

// Byte `at` of the low parts, w bits each.
static WPR_ON_DEVICE uint32_t low_byte(const std::byte* positions, const Layout& layout,
                                       uint64_t at) {
  const uint64_t end = 8 * (at + 1), all = layout.count * layout.width;
  uint32_t bits = 0;
  for (uint64_t bit = 8 * at; bit < end && bit < all;) {
    const uint64_t i = bit / layout.width, skip = bit % layout.width;
    const uint32_t low = cuda::get<uint32_t>(positions + 4 * i) & ((1u << layout.width) - 1);
    bits |= low >> skip << (bit - 8 * at);
    bit += layout.width - skip;
  }
  return bits & 0xFF;
}

// Zeros for what a payload with every value does not send. kFinish: what is sent, and the rest.
template <bool kFinish>
struct Write {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  cuda::Task task;
  Scratch at;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t n = task.raw_size / 4, tail = task.raw_size % 4;
    const uint64_t sent = reinterpret_cast<const Board*>(task.scratch + at.board_at)->count;
    const Layout layout = layout_of(n, sent);
    const uint64_t size = layout.size() + tail;
    if (kFinish && w.block() == 0 && w.warp() == 0) finish(w, layout, size);
    if (size > task.code_size || n == 0) return;
    std::byte* const values = task.code + kCountSize;
    if constexpr (!kFinish) {
      if (layout.dense)
        each_index<kWarps>(w, n, [=](uint64_t i) { cuda::put<uint32_t>(values + 4 * i, 0); });
      return;
    }
    const std::byte* const positions = task.scratch + at.positions_at;
    const std::byte* const words = task.scratch + at.words_at;
    each_index<kWarps>(w, sent, [=](uint64_t i) {
      const uint64_t to = layout.dense ? uint64_t{cuda::get<uint32_t>(positions + 4 * i)} : i;
      cuda::put(values + 4 * to, cuda::get<uint32_t>(words + 4 * i));
    });
    if (layout.dense) return;
    std::byte* const high = task.code + layout.high_at();
    each_index<kWarps>(w, layout.high_size, [=](uint64_t i) {
      high[i] = static_cast<std::byte>(high_byte(positions, layout, i));
    });
    std::byte* const low = task.code + layout.low_at();
    each_index<kWarps>(w, layout.low_size, [=](uint64_t i) {
      low[i] = static_cast<std::byte>(low_byte(positions, layout, i));
    });
  }

 private:
  // The count, the last bytes, and the report.
  template <class W>
  WPR_ON_DEVICE void finish(W& w, const Layout& layout, uint64_t size) const {
    const uint32_t tail = task.raw_size % 4;
    const bool full = size > task.code_size;
    const cuda::Task own = task;
    w.each(
        [=, count = static_cast<uint32_t>(layout.count), any = layout.n > 0](uint32_t lane) {
          if (lane == 0 && full) own.report->full = 1;
          if (full) return;
          if (lane == 0 && any) cuda::put(own.code, count);
          if (lane == 0) own.report->written = size;
          if (lane < tail) own.code[size - tail + lane] = own.raw[own.raw_size - tail + lane];
        },
        w.lane());
  }
};

// ---- decoding ---------------------------------------------------------------------------------

constexpr uint32_t kLaneBytes = 4;  // of high parts
constexpr uint32_t kWarpBytes = kLaneBytes * cuda::kLanes;

// The layout of a code; false: no encoder wrote it.
static WPR_ON_DEVICE bool read_layout(const cuda::Task& task, Layout* layout) {
  const uint64_t n = task.raw_size / 4, count = cuda::get<uint32_t>(task.code);
  if (count > n) return false;
  *layout = layout_of(n, count);
  return layout->count == count && layout->size() + task.raw_size % 4 == task.code_size;
}

// Finds positions: those of the bits of the high parts.
struct Positions {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  cuda::Task task;
  Scratch at;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Layout layout = {};
    if (!read_layout(task, &layout)) return w.at_most(&task.report->first_bad, 0);
    const cuda::Places places(task.scratch + at.places_at);
    const uint64_t number = places.next(w), first = number * kWarpBytes;
    if (layout.dense || first >= layout.high_size) return;
    const std::byte* const high = task.code + layout.high_at();
    const uint64_t size = layout.high_size;
    const auto bits = w.map(
        [=](uint32_t lane) {
          uint32_t word = 0;
          for (uint32_t k = 0; k < kLaneBytes; ++k) {
            const uint64_t byte = first + kLaneBytes * lane + k;
            if (byte < size) word |= std::to_integer<uint32_t>(high[byte]) << 8 * k;
          }
          return word;
        },
        w.lane());
    uint32_t here = 0;
    const auto in_warp = cuda::sums_before(
        w, w.map([](uint32_t x) { return static_cast<uint32_t>(std::popcount(x)); }, bits), &here);
    const uint64_t before = places.before(w, number, here);
    const std::byte* const low = task.code + layout.low_at();
    std::byte* const positions = task.scratch + at.positions_at;
    const uint32_t wrong = w.ballot(w.map(
        [=](uint32_t lane, uint32_t set, uint32_t ahead) {
          bool bad = false;
          for (uint64_t i = before + ahead; set != 0; set &= set - 1, ++i) {
            const uint64_t bit =
                8 * (first + kLaneBytes * lane) + static_cast<uint32_t>(std::countr_zero(set));
            if (i >= layout.count) return true;
            const uint64_t position =
                (bit - i) << layout.width | low_part(low, layout.low_size, i, layout.width);
            bad |= position >= layout.n;
            cuda::put(positions + 4 * i, static_cast<uint32_t>(position < layout.n ? position : 0));
          }
          return bad;
        },
        w.lane(), bits, in_warp));
    const bool last = first + kWarpBytes >= size;
    if (wrong != 0 || (last && (before + here != layout.count || !zeros_behind(layout, low))))
      w.at_most(&task.report->first_bad, 0);
  }

 private:
  static constexpr uint64_t low_part(const std::byte* low, uint64_t size, uint64_t i,
                                     unsigned width) {
    uint64_t bits = 0;
    const uint64_t bit = i * width;
    for (uint64_t byte = bit / 8; byte < (bit + width + 7) / 8 && byte < size; ++byte)
      bits |= std::to_integer<uint64_t>(low[byte]) << 8 * (byte - bit / 8);
    return bits >> bit % 8 & ((uint64_t{1} << width) - 1);
  }
  static constexpr bool zeros_behind(const Layout& layout, const std::byte* low) {
    const uint64_t used = layout.count * layout.width % 8;
    return used == 0 || std::to_integer<uint32_t>(low[layout.low_size - 1]) >> used == 0;
  }
};

// Puts values at their positions, or adds them.
template <bool kAdd>
struct Scatter {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  cuda::Task task;
  Scratch at;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Layout layout = {};
    const bool any = task.raw_size >= 4;
    if (any && !read_layout(task, &layout)) return;
    const uint32_t tail = task.raw_size % 4;
    if (!kAdd && w.block() == 0 && w.warp() == 0)
      cuda::copy_few(w, task.code + task.code_size - tail, task.raw + task.raw_size - tail, tail);
    if (!any) return;
    const std::byte* const values = task.code + kCountSize;
    const std::byte* const positions = task.scratch + at.positions_at;
    std::byte* const dst = task.raw;
    uint64_t* const first_bad = &task.report->first_bad;
    const bool dense = layout.dense;
    const uint64_t step = w.blocks() * kWarps * cuda::kLanes;
    for (uint64_t i = (w.block() * kWarps + w.warp()) * cuda::kLanes; i < layout.count; i += step) {
      const uint32_t wrong = w.ballot(w.map(
          [=, count = layout.count](uint32_t lane) {
            const uint64_t own = i + lane;
            if (own >= count) return false;
            const uint32_t word = cuda::get<uint32_t>(values + 4 * own);
            const uint64_t to = dense ? own : uint64_t{cuda::get<uint32_t>(positions + 4 * own)};
            std::byte* const place = dst + 4 * to;
            const bool falls =
                !dense && own > 0 && cuda::get<uint32_t>(positions + 4 * (own - 1)) >= to;
            if constexpr (kAdd)
              cuda::put(place, cuda::get<float>(place) + std::bit_cast<float>(word));
            else
              cuda::put(place, word);
            return falls || (dense ? word == kSign : (word & ~kSign) == 0);
          },
          w.lane()));
      if (wrong != 0) w.at_most(first_bad, 0);
    }
  }
};

// ---- for cuda::KernelOf -------------------------------------------------------------------------

template <class CodecRule>
class WarpBlocks {
 public:
  static constexpr const char* kName = CodecRule::kName;
  static constexpr bool kGradients = true;

  // On the processor: sums are of codes, which are small.
  static Status add(void*, const Args&, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
                    size_t* written) noexcept {
    return sparse::add(kName, a, b, raw_size, dst, written);
  }
  static Status check_encode(const Args&, size_t size, size_t) {
    if (size / 4 <= kMostValues) return {};
    return fail(Code::kUnsupported, "%s: a block of %zu values, %zu are the most on a GPU", kName,
                size / 4, kMostValues);
  }
  static Status check_decode(const Args&, size_t code_size, size_t size) {
    WPR_TRY(check_encode({}, size, 0));
    if (size < 4 ? code_size == size : code_size >= kCountSize + size % 4) return {};
    return fail(Code::kCorrupt, "%s: %zu bytes are no code of %zu", kName, code_size, size);
  }
  static size_t scratch(const Args& args, size_t size) { return encoder(args, size / 4).size; }
  static size_t decode_scratch(const Args&, size_t size) { return decoder(size / 4).size; }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const size_t n = task.raw_size / 4;
    if (kFeedback && task.code_size < bound(task.raw_size))  // before the residual changes
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes may not fit %zu", kName,
                  task.raw_size, task.code_size);
    const Scratch at = encoder(args, n);
    if (n > 0) WPR_TRY(list<kFeedback>(device, args, task, at));
    const unsigned blocks = blocks_of(n);
    WPR_TRY(device.launch(Write<false>{task, at}, blocks));
    return device.launch(Write<true>{task, at}, blocks);
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args&, const cuda::Task& task) {
    const size_t n = task.raw_size / 4;
    const Scratch at = decoder(n);
    if (!kAdd && n > 0) WPR_TRY(device.clear(task.raw, 4 * n));
    // A code is no larger than this, or it is none.
    const size_t most = std::min(task.code_size, bound(task.raw_size));
    if (n > 0)
      WPR_TRY(device.launch(Positions{task, at}, (most + kWarpBytes * kWarpsOfBlock - 1) /
                                                     (kWarpBytes * kWarpsOfBlock)));
    return device.launch(Scatter<kAdd>{task, at}, blocks_of(most / 4));
  }

 private:
  static size_t chunks_of(size_t n) { return std::max<size_t>(1, (n + kChunk - 1) / kChunk); }
  static Scratch encoder(const Args& args, size_t n) {
    if (n == 0) return Scratch(1, 0, 0);
    const Rule rule = CodecRule::rule(args, n);
    return Scratch(chunks_of(n), samples(rule) && rule.sample < n ? rule.sample : 0,
                   std::min(rule.k, n));
  }
  static Scratch decoder(size_t n) {
    return Scratch((bound(4 * n) + kWarpBytes - 1) / kWarpBytes + kWarpsOfBlock, 0, n);
  }
  // For steps of a warp over n values.
  static unsigned blocks_of(size_t n) {
    constexpr size_t kEach = 4 * kWarpsOfBlock * cuda::kLanes;
    return static_cast<unsigned>(std::clamp<size_t>((n + kEach - 1) / kEach, 1, kMostBlocks));
  }
  static bool samples(const Rule& rule) { return !rule.exact && rule.rank <= rule.sample; }

  template <bool kFeedback, class D>
  static Status list(D& device, const Args& args, const cuda::Task& task, const Scratch& at) {
    const size_t n = task.raw_size / 4;
    const Rule rule = CodecRule::rule(args, n);
    std::byte* const board = task.scratch + at.board_at;
    std::byte* const words = kFeedback ? task.residual : task.raw;
    if (kFeedback) WPR_TRY(device.launch(AddResidual{task}, blocks_of(n)));
    const bool sampled = samples(rule), limited = rule.k < n;
    if (sampled) {
      std::byte* const sample = task.scratch + at.sample_at;
      if (rule.sample < n)
        WPR_TRY(device.launch(TakeSample{words, sample, rule.sample, n, args.seed, args.first},
                              blocks_of(rule.sample)));
      WPR_TRY(find(device, rule.sample < n ? sample : words, rule.sample, board, rule.rank, 0));
    }
    if (limited) WPR_TRY(find(device, words, n, board, rule.k, 1));
    WPR_TRY(device.launch(Decide{board, rule.k, sampled, limited}, 1));
    const size_t each = kWarpsOfBlock;
    return device.launch(List<kFeedback>{words, n, task.scratch, at},
                         (chunks_of(n) + each - 1) / each);
  }

  // The magnitude of a rank.
  template <class D>
  static Status find(D& device, const std::byte* words, size_t n, std::byte* board, size_t rank,
                     unsigned of) {
    for (unsigned digit = 0; digit < kDigits; ++digit) {
      WPR_TRY(device.launch(CountDigit{words, n, board, of, digit}, blocks_of(n / 8)));
      WPR_TRY(device.launch(PickDigit{board, rank, of, digit}, 1));
    }
    return {};
  }
};

}  // namespace wirepress::sparse
