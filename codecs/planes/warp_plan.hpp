// SPDX-License-Identifier: Apache-2.0
// How a GPU's encoder finds what is coded and how (spec.md, "What an encoder writes"): lines and
// elements that are not zero, counts of a sample, code lengths. All that is asked of a sample is
// counts, so that blocks of warps add them up, and one block chooses. Long because it is one plan,
// in the order in which it is made.
#pragma once

#include "codecs/planes/warp_trees.hpp"

namespace wirepress {
namespace {
namespace planes {

// ---- what is known of a block, in scratch memory --------------------------------------------

struct Histograms {
  uint32_t plane[8][kValues], noise[8][kValues];  // of the sample, and of 32 of its lines
  uint32_t steps[kValues], signs[kValues];
  uint32_t sign_changes, n_zeros;
};

struct PlaneChoice {
  Mode mode;
  Lengths lengths;
};

// What a sample says.
struct Look {
  uint64_t expected;  // bytes that the elements will take
  uint32_t flags;
  PlaneChoice plane[kMostPlanes];
};

struct Making {
  uint64_t body_size, n_body;  // without lines of zeros, if they are left out
  uint64_t n_kept;             // elements of it that are not 0
  uint64_t least[2];           // exponent fields that are not 0, less 1
  uint64_t end;                // of the chunks, in the code
  uint32_t has_lines, tries;   // tries: to leave out elements
  uint32_t leaves_out;         // which it does
  Look look[2];                // at all of the body, and without those elements
  PlaneChoice marks;
  uint64_t marks_bits;
  Histograms histograms[2];
  uint32_t marks_counts[kValues], marks_noise[kValues];
  TreeTable tree[kMostPlanes], marks_tree;
  uint32_t marks_head_size, plan_head_size;
  std::byte marks_head[4 + kSymbols / 2], plan_head[2 + kMostPlanes * (4 + kSymbols / 2)];
};

// Scratch memory of an encoder, and the sizes that it is for.
struct EncodeRoom {
  uint32_t size;  // of an element
  uint64_t n_most, lines, marks_most;
  size_t making, lines_places, marks_places, chunk_places, bitmap, lines_before, body, marks,
      others, all;

  static constexpr uint32_t kLineGroups = 8;  // of 32 lines, a warp's
  static constexpr uint32_t kMarkWords = 32;  // of 32 elements, a warp's

  constexpr EncodeRoom(uint32_t element, uint64_t raw_size)
      : size(element),
        n_most(raw_size / element),
        lines((raw_size + kLine - 1) / kLine),
        marks_most((n_most + 7) / 8),
        making(0),
        lines_places(up(sizeof(Making))),
        marks_places(lines_places + up(cuda::Places::size(line_warps()))),
        chunk_places(marks_places + up(cuda::Places::size(mark_warps()))),
        bitmap(chunk_places + up(cuda::Places::size(most_chunks()))),
        lines_before(bitmap + up(4 * line_warps() * kLineGroups)),
        body(lines_before + up(4 * line_warps() * kLineGroups)),
        marks(body + up(raw_size)),
        others(marks + up(4 * mark_warps() * kMarkWords)),
        all(others + up(raw_size)) {}

  constexpr size_t zeros() const { return bitmap; }
  static constexpr size_t up(size_t size) { return (size + 15) / 16 * 16; }
  static constexpr uint64_t chunks_of(uint64_t n) { return (n + kChunk - 1) / kChunk; }
  constexpr uint64_t line_warps() const {
    return (lines + 32 * kLineGroups - 1) / (32 * kLineGroups);
  }
  constexpr uint64_t mark_warps() const {
    return (n_most + 32 * kMarkWords - 1) / (32 * kMarkWords);
  }
  constexpr uint64_t most_chunks() const { return chunks_of(n_most) + chunks_of(marks_most); }
  constexpr uint64_t bitmap_size() const { return (lines + 7) / 8; }
};

struct List {
  const std::byte* at;
  uint64_t n;
};

// What kernels of one task have.
struct Encoding {
  cuda::Task task;
  EncodeRoom room;

  WPR_ON_DEVICE Making& making() const {
    return *reinterpret_cast<Making*>(task.scratch + room.making);
  }
  WPR_ON_DEVICE const std::byte* body() const {
    return making().has_lines != 0 ? task.scratch + room.body : task.raw;
  }
  // Elements of the body, or those that are not 0.
  WPR_ON_DEVICE List list(bool others) const {
    const Making& own = making();
    if (!others) return {body(), own.n_body};
    return {task.scratch + room.others, own.tries != 0 ? own.n_kept : 0};
  }
  WPR_ON_DEVICE uint64_t marks_size() const { return (making().n_body + 7) / 8; }
  WPR_ON_DEVICE uint64_t base(bool others) const {
    const uint64_t least = making().least[others];
    return room.size == 8 && least < 2047 ? least : 0;
  }
};

// ---- lines ----------------------------------------------------------------------------------

// Which lines are not zero, and how many before each 32 of them.
struct FindLines {
  static constexpr unsigned kWarps = 1;
  static constexpr uint32_t kGroups = EncodeRoom::kLineGroups;
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const cuda::Places places(own.task.scratch + own.room.lines_places);
    const uint64_t number = places.next(w), lines = own.room.lines;
    std::byte* const bitmap = own.task.scratch + own.room.bitmap;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < kGroups; ++i) {
      const uint64_t group = number * kGroups + i;
      const uint32_t mask =
          w.ballot(w.map([=, this](uint32_t lane) { return some(32 * group + lane); }, w.lane()));
      kept += static_cast<uint32_t>(std::popcount(mask));
      once(w, [=] { cuda::put(bitmap + 4 * group, mask); });
    }
    uint64_t before = places.before(w, number, kept);
    w.settle();
    std::byte* const befores = own.task.scratch + own.room.lines_before;
    const uint64_t all = before + kept;
    once(w, [=] {
      uint32_t sum = static_cast<uint32_t>(before);
      for (uint64_t group = number * kGroups; group < (number + 1) * kGroups; ++group) {
        cuda::put(befores + 4 * group, sum);
        sum += static_cast<uint32_t>(std::popcount(cuda::get<uint32_t>(bitmap + 4 * group)));
      }
    });
    if (number + 1 != own.room.line_warps()) return;
    once(w, [=, this] {  // the last one knows all
      Making& making = own.making();
      const uint64_t raw_size = own.task.raw_size, last = lines - 1;
      const bool ends = (cuda::get<uint32_t>(bitmap + last / 32 * 4) >> last % 32 & 1) != 0;
      const uint64_t size = all * kLine - (ends ? lines * kLine - raw_size : 0);
      making.has_lines = raw_size - size > own.room.bitmap_size();
      making.body_size = making.has_lines != 0 ? size : raw_size;
      making.n_body = making.body_size / own.room.size;
      making.least[0] = making.least[1] = ~uint64_t{0};
    });
  }

 private:
  WPR_ON_DEVICE bool some(uint64_t line) const {
    if (line >= own.room.lines) return false;
    const std::byte* const at = own.task.raw + line * kLine;
    const uint64_t left = own.task.raw_size - line * kLine;
    uint64_t any = 0;
    if (left >= kLine) {
      WPR_UNROLL
      for (uint32_t i = 0; i < kLine; i += 8) any |= cuda::get<uint64_t>(at + i);
    } else {
      for (uint64_t i = 0; i < left; ++i) any |= static_cast<uint64_t>(at[i]);
    }
    return any != 0;
  }
};

// Lines that are kept, one behind the other: a warp has 32 of all, four lanes have one.
struct GatherLines {
  static constexpr unsigned kWarps = 4;
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t group = w.block() * kWarps + w.warp();
    if (own.making().has_lines == 0 || 32 * group >= own.room.lines) return;
    const uint32_t mask = cuda::get<uint32_t>(own.task.scratch + own.room.bitmap + 4 * group);
    const uint64_t before =
        cuda::get<uint32_t>(own.task.scratch + own.room.lines_before + 4 * group);
    const std::byte* const from = own.task.raw + 32 * kLine * group;
    std::byte* const to = own.task.scratch + own.room.body + kLine * before;
    const uint64_t left = own.task.raw_size - 32 * kLine * group;
    for (uint32_t row = 0; row < 32; row += 8)
      w.each(
          [=](uint32_t lane) {
            const uint32_t line = row + lane / 4, part = lane % 4 * 16;
            if ((mask >> line & 1) == 0) return;
            const uint32_t kept = static_cast<uint32_t>(std::popcount(mask & ((1u << line) - 1)));
            const uint64_t begin = kLine * line + part;
            std::byte* const out = to + kLine * kept + part;
            if (begin + 16 <= left) {
              cuda::put(out, cuda::get<uint64_t>(from + begin));
              cuda::put(out + 8, cuda::get<uint64_t>(from + begin + 8));
            } else {
              for (uint64_t i = 0; begin + i < left; ++i) out[i] = from[begin + i];
            }
          },
          w.lane());
  }
};

// ---- elements -------------------------------------------------------------------------------

// Which elements are not 0, if the sample had many that are, and these in a row.
template <typename Word>
struct MarkElements {
  static constexpr unsigned kWarps = 1;
  static constexpr uint32_t kSize = sizeof(Word), kWords = EncodeRoom::kMarkWords;
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Making& making = own.making();
    if (making.tries == 0) return;
    const cuda::Places places(own.task.scratch + own.room.marks_places);
    const uint64_t number = places.next(w), n = making.n_body, first = number * kWords;
    const std::byte* const from = own.body();
    std::byte* const marks = own.task.scratch + own.room.marks;
    uint32_t kept = 0;
    for (uint64_t i = first; i < first + kWords; ++i) {
      const uint32_t mask = mask_of(w, from, 32 * i, n);
      kept += static_cast<uint32_t>(std::popcount(mask));
      once(w, [=] { cuda::put(marks + 4 * i, mask); });
    }
    const uint64_t before = places.before(w, number, kept);
    if (number + 1 == own.room.mark_warps())
      once(w, [&making, before, kept] { making.n_kept = before + kept; });
    std::byte* to = own.task.scratch + own.room.others + kSize * before;
    for (uint64_t i = first; i < first + kWords; ++i) {
      const uint32_t mask = mask_of(w, from, 32 * i, n);
      w.each(
          [=](uint32_t lane) {
            if ((mask >> lane & 1) == 0) return;
            const uint32_t at = static_cast<uint32_t>(std::popcount(mask & ((1u << lane) - 1)));
            cuda::put(to + kSize * at, cuda::get<Word>(from + kSize * (32 * i + lane)));
          },
          w.lane());
      to += kSize * static_cast<uint32_t>(std::popcount(mask));
    }
  }

 private:
  template <class W>
  static WPR_ON_DEVICE uint32_t mask_of(W& w, const std::byte* from, uint64_t first, uint64_t n) {
    return w.ballot(w.map(
        [=](uint32_t lane) {
          return first + lane < n && cuda::get<Word>(from + kSize * (first + lane)) != 0;
        },
        w.lane()));
  }
};

// The least exponent field of doubles, but 0, less 1.
struct FindBase {
  static constexpr unsigned kWarps = 4;
  Encoding own;
  bool others;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const List list = own.list(others);
    const uint64_t step = w.blocks() * kWarps * cuda::kLanes;
    auto most = w.all(uint32_t{0});  // of complements
    for (uint64_t i = (w.block() * kWarps + w.warp()) * cuda::kLanes; i < list.n; i += step)
      most = w.map(
          [=](uint32_t own_most, uint32_t lane) {
            if (i + lane >= list.n) return own_most;
            const uint32_t upper = cuda::get<uint32_t>(list.at + 8 * (i + lane) + 4);
            const uint32_t x = ~((upper >> 20 & 2047) - 1);  // of 0 it is 0
            return x > own_most ? x : own_most;
          },
          most, w.lane());
    const uint32_t found = w.most(most);
    if (found != 0) w.at_most(&own.making().least[others], uint64_t{~found});
  }
};

// ---- counts ---------------------------------------------------------------------------------

// Whether line `i` of n is one of the 32 by which noise is known.
constexpr bool tells_noise(uint64_t i, uint64_t n) {
  const uint64_t k = (kNoiseLines * i + n - 1) / n;
  return k < kNoiseLines && n * k / kNoiseLines == i;
}

// Counts of the sample's bytes: a warp has a line of 64 elements at a time.
template <typename Word>
struct CountSample {
  static constexpr unsigned kWarps = 8;
  static constexpr unsigned kLeastBlocks = 4;  // or ptxas spills to have 5
  static constexpr uint32_t kSize = sizeof(Word), kTurns = 8;
  static constexpr uint32_t kSignAt = sign_bit(kSize);
  struct Told {
    uint32_t plane[kSize][kValues], noise[kSize][kValues], steps[kValues], signs[kValues];
    uint32_t sign_changes, n_zeros;
  };
  static constexpr size_t kShared = sizeof(Told);
  Encoding own;
  bool others;

  // Of a list of n elements or fewer.
  static constexpr uint64_t blocks(uint64_t n) {
    constexpr uint64_t kMostLines = 1024 + 1024 / 8 + 1;
    const uint64_t lines = n / kLine < kMostLines ? n / kLine : kMostLines;
    return lines / (kWarps * kTurns) + 1;
  }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const List list = own.list(others);
    const SampleLines lines(list.n);
    const uint64_t first = w.block() * kWarps * kTurns;
    if (list.n == 0 || (first > 0 && first >= lines.n)) return;
    Told& told = *reinterpret_cast<Told*>(w.shared());
    constexpr uint32_t kWords = sizeof(Told) / 4;
    std::byte* const words = w.shared();
    for (uint32_t i = w.warp() * cuda::kLanes; i < kWords; i += kWarps * cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane < kWords) cuda::put(words + 4 * (i + lane), uint32_t{0});
          },
          w.lane());
    w.sync();
    const uint64_t base = own.base(others) << 52;
    for (uint32_t i = 0; i < kTurns; ++i) {
      const uint64_t line = first + i * kWarps + w.warp();
      if (line < lines.n)
        count_line(w, told, list.at + kSize * kLine * line * lines.step, base,
                   lines.n >= kNoiseLines && tells_noise(line, lines.n));
    }
    if (lines.n == 0 && w.warp() == 0)
      count(w, told, list.at, static_cast<uint32_t>(list.n), base, false);
    w.sync();
    std::byte* const to = reinterpret_cast<std::byte*>(&own.making().histograms[others]);
    add(w, words, to, 0, kSize * kValues);
    add(w, words + sizeof(Told::plane), to + offsetof(Histograms, noise), 0, kSize * kValues);
    add(w, words + offsetof(Told, steps), to + offsetof(Histograms, steps), 0, 2 * kValues + 2);
  }

 private:
  static_assert(offsetof(Histograms, n_zeros) - offsetof(Histograms, steps) ==
                offsetof(Told, n_zeros) - offsetof(Told, steps));

  template <class W>
  static WPR_ON_DEVICE void add(W& w, const std::byte* from, std::byte* to, uint32_t begin,
                                uint32_t n) {
    for (uint32_t i = begin + w.warp() * cuda::kLanes; i < n; i += kWarps * cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            const uint32_t count = i + lane < n ? cuda::get<uint32_t>(from + 4 * (i + lane)) : 0;
            if (count > 0) W::add_to(to + 4 * (i + lane), count);
          },
          w.lane());
  }

  // n <= 64 elements.
  template <class W>
  static WPR_ON_DEVICE void count(W& w, Told& told, const std::byte* from, uint32_t n,
                                  uint64_t base, bool tells) {
    for (uint32_t row = 0; row < n; row += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (row + lane >= n) return;
            const Word word = cuda::get<Word>(from + kSize * (row + lane));
            if (word == 0) W::add_to(reinterpret_cast<std::byte*>(&told.n_zeros), 1);
            const Word turned = turn(word, base);
            WPR_UNROLL
            for (uint32_t p = 0; p < kSize; ++p) {
              const uint32_t value = static_cast<uint32_t>(turned >> 8 * p) & 255;
              W::add_to(reinterpret_cast<std::byte*>(&told.plane[p][value]), 1);
              if (tells) W::add_to(reinterpret_cast<std::byte*>(&told.noise[p][value]), 1);
            }
          },
          w.lane());
  }

  template <class W>
  static WPR_ON_DEVICE void count_line(W& w, Told& told, const std::byte* from, uint64_t base,
                                       bool tells) {
    count(w, told, from, kLine, base, tells);
    const auto upper = [=](uint32_t i) {
      return static_cast<uint32_t>(turn(cuda::get<Word>(from + kSize * i), base) >>
                                   (8 * kSize - 8)) &
             255;
    };
    const auto sign = [=](uint32_t i) {
      return (turn(cuda::get<Word>(from + kSize * i), base) >> kSignAt & 1) != 0;
    };
    for (uint32_t row = 0; row < kLine; row += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            const uint32_t i = row + lane;
            if (i == 0) return;
            const uint32_t step = (upper(i) - upper(i - 1) + 128) & 255;
            W::add_to(reinterpret_cast<std::byte*>(&told.steps[step]), 1);
          },
          w.lane());
    uint64_t word = w.ballot(w.map(sign, w.lane()));
    word |= uint64_t{w.ballot(w.map([=](uint32_t lane) { return sign(32 + lane); }, w.lane()))}
            << 32;
    word ^= word << 1 | (word & 1);
    w.each(
        [&](uint32_t lane) {
          if (lane >= 8) return;
          W::add_to(reinterpret_cast<std::byte*>(&told.signs[word >> 8 * lane & 255]), 1);
          if (lane == 0)
            W::add_to(reinterpret_cast<std::byte*>(&told.sign_changes),
                      static_cast<uint32_t>(std::popcount(word)));
        },
        w.lane());
  }
};

// Counts of all bytes that say which elements are there.
struct CountMarks {
  static constexpr unsigned kWarps = 8;
  static constexpr size_t kShared = 2 * 4 * kValues;
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Making& making = own.making();
    const uint64_t size = own.marks_size(), first = w.block() * kChunk;
    if (making.tries == 0 || first >= size) return;
    std::byte* const counts = w.shared();
    std::byte* const noise = counts + 4 * kValues;
    for (uint32_t i = w.warp() * cuda::kLanes; i < 2 * kValues; i += kWarps * cuda::kLanes)
      w.each([=](uint32_t lane) { cuda::put(counts + 4 * (i + lane), uint32_t{0}); }, w.lane());
    w.sync();
    const uint64_t lines = size / kLine;
    const std::byte* const marks = own.task.scratch + own.room.marks;
    for (uint32_t i = w.warp() * cuda::kLanes; i < kChunk; i += kWarps * cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            const uint64_t at = first + i + lane;
            if (at >= size) return;
            const uint32_t value = static_cast<uint32_t>(marks[at]);
            W::add_to(counts + 4 * value, 1);
            if (at / kLine < lines && lines >= kNoiseLines && tells_noise(at / kLine, lines))
              W::add_to(noise + 4 * value, 1);
          },
          w.lane());
    w.sync();
    std::byte* const to = reinterpret_cast<std::byte*>(making.marks_counts);
    for (uint32_t i = w.warp() * cuda::kLanes; i < 2 * kValues; i += kWarps * cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            const uint32_t count = cuda::get<uint32_t>(counts + 4 * (i + lane));
            if (count > 0) W::add_to(to + 4 * (i + lane), count);
          },
          w.lane());
  }
};

// ---- choices --------------------------------------------------------------------------------

// How planes are stored, by their counts. A warp has a plane at a time; what is asked one by one of
// the values that occur is one lane's.
struct Choose {
  static constexpr unsigned kWarps = 4;
  static constexpr unsigned kLeastBlocks = 4;
  struct Work {  // of a warp
    Counts counts;
    std::array<uint64_t, kSymbols> keys, sorted;
    Order order;
    Huffman tree;
    Lengths lengths;
    uint64_t bits;
  };
  struct Told {
    Work work[kWarps];
    uint64_t bits[kMostPlanes];
    uint32_t has_signs, has_steps;
  };
  static constexpr size_t kShared = sizeof(Told);
  Encoding own;
  bool others;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Making& making = own.making();
    if (others && making.tries == 0) return;
    const List list = own.list(others);
    const uint32_t size = own.room.size;
    Told& told = *reinterpret_cast<Told*>(w.shared());
    Work& work = told.work[w.warp()];
    Look& look = making.look[others];
    const Histograms& counts = making.histograms[others];
    const SampleLines lines(list.n);
    const uint64_t n = list.n, sampled = lines.n > 0 ? lines.n * kLine : n;
    if (others && w.warp() == kWarps - 1) {
      const uint64_t all = own.marks_size();
      making.marks_bits = choose(w, work, making.marks_counts, making.marks_noise, 0, all / kLine,
                                 all, all, &making.marks);
    }
    if (w.warp() == 0) {
      told.has_steps = 0;
      told.has_signs =
          choose_signs(w, work, counts, lines.n, n, &told.bits[size], &look.plane[size]);
    }
    w.sync();
    for (uint32_t p = w.warp(); p < size && n > 0; p += kWarps) {
      PlaneChoice* const plane = &look.plane[p];
      uint64_t bits = 0;
      if (p == size - 1)
        bits = choose_upper(w, work, counts, p, lines.n, sampled, n, plane, &told.has_steps);
      if (bits == 0) {
        const uint32_t mask = p == 0 && told.has_signs != 0 ? 1u << sign_bit(size) : 0;
        bits = choose(w, work, counts.plane[p], counts.noise[p], mask, lines.n, sampled, n, plane);
      }
      told.bits[p] = bits;
    }
    w.sync();
    if (w.warp() == 0) once(w, [&, this] { conclude(told, sampled, n, &look); });
  }

 private:
  WPR_ON_DEVICE void conclude(const Told& told, uint64_t sampled, uint64_t n, Look* look) const {
    Making& making = own.making();
    const uint32_t size = own.room.size;
    look->flags = (making.has_lines != 0 ? kLines : 0) | (others ? kElements : 0);
    if (n > 0) {
      look->flags |= (told.has_signs != 0 ? kSigns : 0) | (told.has_steps != 0 ? kDifferences : 0);
      uint64_t bits = told.has_signs != 0 ? told.bits[size] : 0;
      for (uint32_t p = 0; p < size; ++p) bits += told.bits[p];
      look->expected = bits * n / (8 * sampled);
    } else {
      look->expected = 0;
    }
    if (!others) {
      making.tries = n > 0 && 64 * uint64_t{making.histograms[0].n_zeros} >= sampled;
      return;
    }
    const uint64_t with_zeros = making.look[0].expected, marks = (making.marks_bits + 7) / 8;
    making.leaves_out = marks + look->expected + with_zeros / 128 < with_zeros;
  }

  // As choose() of plan.hpp: the bits that the sample takes. Values lose the bits of `mask`.
  template <class W>
  static WPR_ON_DEVICE uint64_t choose(W& w, Work& work, const uint32_t* counts,
                                       const uint32_t* noise, uint32_t mask, uint64_t lines,
                                       uint64_t sampled, uint64_t n, PlaneChoice* plane) {
    load(w, work, counts, mask);
    const uint32_t any = w.either(occurring(w, work, 0));
    const uint32_t all = ~w.either(occurring(w, work, 255)) & 255;
    uint64_t squares = 0;
    if (any == 255 && lines >= kNoiseLines) {
      auto sum = w.all(uint32_t{0});
      for (uint32_t i = 0; i < kValues; i += cuda::kLanes)
        sum = w.map(
            [=](uint32_t before, uint32_t lane) {
              const uint32_t count = of(noise, i + lane, mask);
              return before + count * count;
            },
            sum, w.lane());
      squares = sum_of(w, sum);
      if (squares < kNoise) {
        once(w, [=] { plane->mode = kRaw; });
        return 8 * sampled;
      }
    }
    const uint64_t coded = estimate(w, work, sampled);
    const Choice choice = choice_of(static_cast<uint8_t>(any), static_cast<uint8_t>(all), coded,
                                    Range(work.lengths).table_size(), sampled, n);
    once(w, [=] { plane->mode = choice.mode; });
    if (choice.mode == kTable) store(w, work, plane);
    return choice.bits;
  }

  // As choose_upper().
  template <class W>
  static WPR_ON_DEVICE uint64_t choose_upper(W& w, Work& work, const Histograms& counts, uint32_t p,
                                             uint64_t lines, uint64_t sampled, uint64_t n,
                                             PlaneChoice* plane, uint32_t* has_steps) {
    load(w, work, counts.plane[p], 0);
    uint64_t bits = estimate(w, work, sampled);
    bool steps = false;
    if (lines > 0) {
      store(w, work, plane);
      const uint64_t n_steps = lines * (kLine - 1);
      load(w, work, counts.steps, 0);
      const uint64_t steps_bits = estimate(w, work, n_steps);
      steps = better_by_steps(bits, steps_bits, sampled, n_steps);
      if (steps) bits = steps_bits * sampled / n_steps;
    }
    if (steps || lines == 0) store(w, work, plane);
    w.settle();
    if (!pays(bits, Range(plane->lengths).table_size(), sampled, n)) return 0;
    once(w, [=] {
      plane->mode = kTable;
      *has_steps = steps;
    });
    return bits;
  }

  // As choose_signs().
  template <class W>
  static WPR_ON_DEVICE bool choose_signs(W& w, Work& work, const Histograms& counts, uint64_t lines,
                                         uint64_t n, uint64_t* bits, PlaneChoice* plane) {
    const uint64_t sampled = lines * kLine;
    if (lines == 0 || 4 * uint64_t{counts.sign_changes} > sampled) return false;
    load(w, work, counts.signs, 0);
    const uint64_t coded = estimate(w, work, 8 * lines);
    if (!repeats(coded, sampled) ||
        !pays(coded, Range(work.lengths).table_size(), 8 * lines, (n + 7) / 8))
      return false;
    once(w, [=] {
      plane->mode = kTable;
      *bits = coded;
    });
    store(w, work, plane);
    return true;
  }

  static WPR_ON_DEVICE uint32_t of(const uint32_t* counts, uint32_t value, uint32_t mask) {
    if ((value & mask) != 0) return 0;
    return mask == 0 ? counts[value] : counts[value] + counts[value | mask];
  }
  template <class W>
  static WPR_ON_DEVICE void load(W& w, Work& work, const uint32_t* counts, uint32_t mask) {
    w.settle();
    for (uint32_t i = 0; i < kValues; i += cuda::kLanes)
      w.each([&](uint32_t lane) { work.counts[i + lane] = of(counts, i + lane, mask); }, w.lane());
    w.settle();
  }
  // Of each lane, the bits of values that occur, turned by `turned`.
  template <class W>
  static WPR_ON_DEVICE auto occurring(W& w, const Work& work, uint32_t turned) {
    return w.map(
        [&work, turned](uint32_t lane) {
          uint32_t bits = 0;
          for (uint32_t i = lane; i < kValues; i += cuda::kLanes)
            if (work.counts[i] > 0) bits |= i ^ turned;
          return bits;
        },
        w.lane());
  }
  template <class W>
  static WPR_ON_DEVICE void store(W& w, const Work& work, PlaneChoice* plane) {
    w.settle();
    for (uint32_t i = 0; i < kSymbols; i += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (i + lane < kSymbols) plane->lengths[i + lane] = work.lengths[i + lane];
          },
          w.lane());
  }

  // As estimate() of lengths.hpp, of work.counts.
  template <class W>
  static WPR_ON_DEVICE uint64_t estimate(W& w, Work& work, uint64_t total) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < kValues; i += cuda::kLanes) {
      const uint32_t some =
          w.ballot(w.map([&](uint32_t lane) { return work.counts[i + lane] > 0; }, w.lane()));
      w.each(
          [&](uint32_t lane) {
            const uint32_t before = static_cast<uint32_t>(std::popcount(some & ((1u << lane) - 1)));
            if ((some >> lane & 1) != 0)
              work.keys[n + before] = uint64_t{work.counts[i + lane]} << 9 | (i + lane);
          },
          w.lane());
      n += static_cast<uint32_t>(std::popcount(some));
    }
    w.settle();
    for (uint32_t i = 0; i < n;
         i += cuda::kLanes)  // each key's place is the number of smaller ones
      w.each(
          [&](uint32_t lane) {
            if (i + lane >= n) return;
            const uint64_t key = work.keys[i + lane];
            uint32_t place = 0;
            for (uint32_t k = 0; k < n; ++k) place += work.keys[k] < key;
            work.sorted[place] = key;
          },
          w.lane());
    for (uint32_t i = 0; i < kSymbols; i += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (i + lane < kSymbols) work.lengths[i + lane] = 0;
          },
          w.lane());
    w.settle();
    once(w, [&work, n, total] {
      fold_sorted(work.sorted, n, total, &work.counts, &work.order);
      tree_depths(work.counts, work.order, &work.tree, &work.lengths);
      limit(work.order, &work.lengths);
      work.bits = bits_of(work.counts, work.order, work.lengths);
    });
    w.settle();
    return work.bits;
  }
};

// ---- heads ----------------------------------------------------------------------------------

// What a payload says of its planes, and trees: a warp has a plane, and those of the marks.
struct PutPlan {
  static constexpr unsigned kWarps = kMostPlanes + 1, kLeastBlocks = 1;
  struct Told {
    std::byte head[kWarps][4 + kSymbols / 2];
    uint32_t size[kWarps];
    // Tests take the barrier out: what is read then must not reach beyond the memory.
    WPR_ON_DEVICE uint32_t written(uint32_t p) const {
      return size[p] < sizeof head[0] ? size[p] : static_cast<uint32_t>(sizeof head[0]);
    }
  };
  static constexpr size_t kShared = sizeof(Told);
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Making& making = own.making();
    Told& told = *reinterpret_cast<Told*>(w.shared());
    const bool others = making.leaves_out != 0;
    const Look& look = making.look[others];
    const uint32_t p = w.warp(), size = own.room.size;
    const uint32_t planes = own.list(others).n == 0 ? 0 : size + ((look.flags & kSigns) != 0);
    const bool marks = p == kMostPlanes;
    once(w, [&, p] {
      told.size[p] = 0;
      if (marks ? !others : p >= planes) return;
      const PlaneChoice& plane = marks ? making.marks : look.plane[p];
      told.size[p] = put(plane, told.head[p]);
      if (plane.mode != kTable) return;
      const Range range(plane.lengths);
      build(marks ? &making.marks_tree : &making.tree[p], static_cast<uint32_t>(range.first),
            static_cast<uint32_t>(range.last),
            [&](uint32_t s) { return uint32_t{plane.lengths[s]}; });
    });
    w.sync();
    uint32_t at = 0;
    if (size == 8 && planes > 0) {
      const uint64_t base = own.base(others);
      if (p == 0)
        once(w, [&] {
          making.plan_head[0] = static_cast<std::byte>(base);
          making.plan_head[1] = static_cast<std::byte>(base >> 8);
        });
      at = 2;
    }
    for (uint32_t i = 0; i < kMostPlanes && i < p; ++i) at += told.written(i);
    std::byte* const to = marks ? making.marks_head : making.plan_head + at;
    const uint32_t n = told.written(p);
    for (uint32_t i = 0; i < n; i += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (i + lane < n) to[i + lane] = told.head[p][i + lane];
          },
          w.lane());
    if (marks)
      once(w, [&, at, n] {
        making.plan_head_size = at;
        making.marks_head_size = n;
      });
  }

 private:
  // Its size.
  static WPR_ON_DEVICE uint32_t put(const PlaneChoice& plane, std::byte* to) {
    to[0] = static_cast<std::byte>(plane.mode);
    if (plane.mode != kTable) return 1;
    const Range range(plane.lengths);
    to[1] = static_cast<std::byte>(range.first);
    to[2] = static_cast<std::byte>(range.last);
    const uint32_t n = static_cast<uint32_t>(range.last - range.first) + 2;
    const auto length = [&](uint32_t i) {
      return i >= n ? 0u : uint32_t{plane.lengths[i == 0 ? kEscape : range.first + i - 1]};
    };
    for (uint32_t i = 0; i < n; i += 2)
      to[3 + i / 2] = static_cast<std::byte>(length(i) | length(i + 1) << 4);
    return 3 + (n + 1) / 2;
  }
};

}  // namespace planes
}  // namespace
}  // namespace wirepress
