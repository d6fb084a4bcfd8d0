// SPDX-License-Identifier: Apache-2.0
// The encoder of warp.hpp, behind the plan (warp_plan.hpp): a block of 16 warps has a chunk. What
// its planes take follows from counts of their values; while the block learns where it begins, no
// code has been made. Then a plane at a time is brought to shared memory in its smallest form, and
// written. Long because all forms of a chunk are made in the same shared memory.
#pragma once

#include "codecs/planes/warp_plan.hpp"

namespace wirepress {
namespace {
namespace planes {

template <typename Word>
struct PutChunks {
  static constexpr unsigned kWarps = kChunkWarps;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200  // where 64 registers are too few
  static constexpr unsigned kLeastBlocks = 1;
#else
  static constexpr unsigned kLeastBlocks = 2;
#endif
  static constexpr uint32_t kSize = sizeof(Word), kPlanes = kSize + 1;
  static constexpr uint32_t kSignAt = sign_bit(kSize);
  static constexpr uint32_t kLaneWords = kChunk / 4 / (kWarps * cuda::kLanes);  // of code
  struct Told {
    std::byte values[kChunk];     // of a plane
    std::byte code[kChunk + 16];  // its form
    uint16_t ones[kChunk / 4];    // before each word of it
    uint32_t counts[kPlanes][kValues];
    uint16_t leaves[kPlanes][kMostLeaves + 2];  // values in leaves before each
    uint32_t sizes[kPlanes];                    // bytes, with what stands before the form
    uint16_t node_at[kMostLeaves], escapes_at;  // bytes, in the code
    uint8_t kinds[kPlanes], any[kPlanes];
    uint32_t sums[kWarps];
    uint64_t number, begin;
  };
  static constexpr size_t kShared = sizeof(Told);
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Told& told = *reinterpret_cast<Told*>(w.shared());
    const cuda::Places places(own.task.scratch + own.room.chunk_places);
    if (w.warp() == 0) {
      const uint64_t number = places.next(w);
      once(w, [&told, number] { told.number = number; });
    }
    clear(w, reinterpret_cast<std::byte*>(told.counts), sizeof(told.counts) / 4);
    w.sync();
    const Source source(own, told.number);
    if (source.n == 0) return;
    count(w, source, told);
    w.sync();
    if (w.warp() < source.planes) measure(w, source, w.warp(), told);
    w.sync();
    uint32_t size = 0;
    for (uint32_t p = 0; p < source.planes; ++p) size += told.sizes[p];
    if (w.warp() == 0) {
      const uint64_t before = places.before(w, told.number, size);
      once(w, [&told, before] { told.begin = before; });
    }
    w.sync();
    const Making& making = own.making();
    const uint64_t begin = source.head_end + told.begin;
    if (source.last && w.warp() == 0)
      once(w, [this, begin, size] { own.making().end = begin + size; });
    if (begin + size > own.task.code_size) {
      once(w, [this] { own.task.report->full = 1; });
      return;
    }
    if (source.first && w.warp() == 0)
      cuda::copy_any(w, making.plan_head, own.task.code + begin - making.plan_head_size,
                     making.plan_head_size);
    uint64_t at = begin;
    bool used = false;                         // shared memory, by the plane before
    for (uint32_t pass = 0; pass < 2; ++pass)  // planes as they are, then the others
      for (uint32_t p = 0; p < source.planes; ++p) {
        if ((source.mode(p) == kRaw) != (pass == 0)) continue;
        put(w, source, p, told, own.task.code + at, &used);
        at += told.sizes[p];
      }
  }

 private:
  // Of which chunk the bytes are: of elements, or of the bits that say which are there.
  struct Source {
    const Encoding& own;
    const Look& look;
    uint32_t n = 0, planes = 0;  // elements or bytes; 0: there is no such chunk
    bool marks = false, first = false, last = false;  // first: of elements; last: of all
    const std::byte* at = nullptr;
    uint64_t base = 0, head_end = 0;

    WPR_ON_DEVICE Source(const Encoding& encoding, uint64_t number)
        : own(encoding), look(encoding.making().look[encoding.making().leaves_out]) {
      const Making& making = own.making();
      const bool others = making.leaves_out != 0;
      const uint64_t marks_size = others ? own.marks_size() : 0;
      const uint64_t marks_chunks = EncodeRoom::chunks_of(marks_size);
      const List list = own.list(others);
      last = number + 1 == marks_chunks + EncodeRoom::chunks_of(list.n);
      head_end = 1 + (making.has_lines != 0 ? own.room.bitmap_size() : 0) + making.marks_head_size;
      uint64_t begin = number * kChunk, all = marks_size;
      marks = number < marks_chunks;
      if (marks) {
        at = own.task.scratch + own.room.marks + begin;
        planes = 1;
      } else {
        begin -= marks_chunks * kChunk;
        all = list.n;
        first = begin == 0;
        at = list.at + kSize * begin;
        base = own.base(others) << 52;
        head_end += making.plan_head_size;
        planes = kSize + ((look.flags & kSigns) != 0);
      }
      if (begin < all) n = static_cast<uint32_t>(all - begin < kChunk ? all - begin : kChunk);
    }

    WPR_ON_DEVICE Mode mode(uint32_t p) const {
      return marks ? own.making().marks.mode : look.plane[p].mode;
    }
    WPR_ON_DEVICE const TreeTable& tree(uint32_t p) const {
      return marks ? own.making().marks_tree : own.making().tree[p];
    }
    WPR_ON_DEVICE uint32_t values(uint32_t p) const {
      return !marks && p == kSize ? (n + 7) / 8 : n;
    }

    WPR_ON_DEVICE Word word(uint32_t i) const {
      return turn(cuda::get<Word>(at + kSize * i), base);
    }
    // Byte p of a word as it stands in its plane; of the upper one `before` is the word before it.
    WPR_ON_DEVICE uint32_t byte(uint32_t p, Word word, Word before) const {
      uint32_t value = static_cast<uint32_t>(word >> 8 * p) & 255;
      if (p == 0 && (look.flags & kSigns) != 0) value &= ~(1u << kSignAt);
      if (p == kSize - 1 && (look.flags & kDifferences) != 0)
        value = (value - (static_cast<uint32_t>(before >> 8 * p) & 255) + 128) & 255;
      return value;
    }
    WPR_ON_DEVICE Word before(uint32_t i) const {
      return (look.flags & kDifferences) != 0 && i > 0 ? word(i - 1) : Word{0};
    }
    // Eight signs, each xor the one before it.
    WPR_ON_DEVICE uint32_t signs(uint32_t i) const {
      uint32_t bits = 0;
      uint32_t last_one = i > 0 ? sign(8 * i - 1) : 0;
      for (uint32_t k = 0; k < 8 && 8 * i + k < n; ++k) {
        const uint32_t now = sign(8 * i + k);
        bits |= (now ^ last_one) << k;
        last_one = now;
      }
      return bits;
    }
    WPR_ON_DEVICE uint32_t sign(uint32_t i) const {
      return static_cast<uint32_t>(word(i) >> kSignAt & 1);
    }
    WPR_ON_DEVICE uint32_t value(uint32_t p, uint32_t i) const {
      if (marks) return static_cast<uint32_t>(at[i]);
      return p == kSize ? signs(i) : byte(p, word(i), p == kSize - 1 ? before(i) : Word{0});
    }
  };

  template <class W>
  static WPR_ON_DEVICE void clear(W& w, std::byte* words, uint32_t n) {
    for (uint32_t i = w.warp() * cuda::kLanes; i < n; i += kWarps * cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane < n) cuda::put(words + 4 * (i + lane), uint32_t{0});
          },
          w.lane());
  }

  // Values of planes that are not stored as they are.
  template <class W>
  static WPR_ON_DEVICE void count(W& w, const Source& source, Told& told) {
    const auto add = [&told](uint32_t p, uint32_t value) {
      W::add_to(reinterpret_cast<std::byte*>(&told.counts[p][value]), 1);
    };
    for (uint32_t row = w.warp() * cuda::kLanes; row < source.n; row += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            const uint32_t i = row + lane;
            if (i >= source.n) return;
            if (source.marks) return add(0, source.value(0, i));
            const Word word = source.word(i), before = source.before(i);
            WPR_UNROLL
            for (uint32_t p = 0; p < kSize; ++p)
              if (source.mode(p) != kRaw) add(p, source.byte(p, word, before));
            if (source.planes > kSize && 8 * i < source.n) add(kSize, source.signs(i));
          },
          w.lane());
  }

  // What a plane takes, and in which form; by one warp.
  template <class W>
  static WPR_ON_DEVICE void measure(W& w, const Source& source, uint32_t p, Told& told) {
    const uint32_t n = source.values(p);
    const Mode mode = source.mode(p);
    if (mode == kRaw) return once(w, [&told, p, n] { told.sizes[p] = n; });
    const uint32_t* const counts = told.counts[p];
    const auto occurring = [&](uint32_t turned) {
      return w.either(w.map(
          [=](uint32_t lane) {
            uint32_t bits = 0;
            for (uint32_t i = lane; i < kValues; i += cuda::kLanes)
              if (counts[i] > 0) bits |= i ^ turned;
            return bits;
          },
          w.lane()));
    };
    const uint32_t any = occurring(0), all = ~occurring(255) & 255;
    uint32_t least = n;
    if (mode == kTable && any != all) {
      const uint32_t coded = measure_tree(w, source.tree(p), n, counts, told.leaves[p]);
      least = coded < n ? coded : n;
    }
    const uint32_t bits = 1 + static_cast<uint32_t>(std::popcount(any)) * ((n + 7) / 8);
    Kind kind = kBits;
    uint32_t size = bits;
    if (any == all) {
      kind = kConstant;
      size = 1;
    } else if (least < bits && least < n) {
      kind = kCoded;
      size = least;
    } else if (bits >= n) {
      kind = kStored;
      size = n;
    }
    once(w, [&told, p, kind, any, size] {
      told.kinds[p] = kind;
      told.any[p] = static_cast<uint8_t>(any);
      told.sizes[p] = 1 + size;
    });
  }

  // The bytes of a partition code, and the values in leaves before each.
  template <class W>
  static WPR_ON_DEVICE uint32_t measure_tree(W& w, const TreeTable& tree, uint32_t n,
                                             const uint32_t* counts, uint16_t* leaves) {
    constexpr uint32_t kEach = kMostLeaves / cuda::kLanes;
    const auto coded = w.map(
        [&](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t i = kEach * lane; i < kEach * lane + kEach && i < tree.n_leaves; ++i)
            if (i != tree.escape) sum += counts[tree.symbol[i]];
          return sum;
        },
        w.lane());
    const uint32_t escapes = n - sum_of(w, coded);
    const auto own =
        w.map([&](uint32_t sum,
                  uint32_t lane) { return sum + (tree.escape / kEach == lane ? escapes : 0); },
              coded, w.lane());
    uint32_t all = 0;
    const auto before = cuda::sums_before(w, own, &all);
    w.each(
        [&](uint32_t lane, uint32_t sum) {
          for (uint32_t i = kEach * lane; i < kEach * lane + kEach && i < tree.n_leaves; ++i) {
            leaves[i] = static_cast<uint16_t>(sum);
            sum += i == tree.escape ? escapes : counts[tree.symbol[i]];
          }
        },
        w.lane(), before);
    once(w, [&tree, leaves, all] { leaves[tree.n_leaves] = static_cast<uint16_t>(all); });
    w.settle();
    const auto bytes = w.map(
        [&](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t k = lane; k < tree.n_nodes; k += cuda::kLanes)
            sum += node_size(tree.node[k], leaves);
          return sum;
        },
        w.lane());
    return sum_of(w, bytes) + escapes;
  }
  static WPR_ON_DEVICE uint32_t node_size(const TreeTable::Node& node, const uint16_t* leaves) {
    return (uint32_t{leaves[node.end]} - leaves[node.first] + 7) / 8;
  }

  // Brings a plane's chunk to where it belongs, by all warps.
  template <class W>
  WPR_ON_DEVICE void put(W& w, const Source& source, uint32_t p, Told& told, std::byte* to,
                         bool* used) const {
    const uint32_t n = source.values(p), size = told.sizes[p];
    const bool raw = source.mode(p) == kRaw;
    const uint32_t kind = raw ? uint32_t{kStored} : told.kinds[p], any = told.any[p];
    const uint32_t head = raw ? 0 : kind == kConstant || kind == kBits ? 2 : 1;
    if (w.warp() == 0)
      w.each(
          [=](uint32_t lane) {
            if (lane < head) to[lane] = static_cast<std::byte>(lane == 0 ? kind : any);
          },
          w.lane());
    if (kind == kConstant) return;
    if (*used) w.sync();  // until that one has been written
    *used = true;
    for (uint32_t row = w.warp() * cuda::kLanes; row < n; row += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (row + lane < n)
              told.values[row + lane] = static_cast<std::byte>(source.value(p, row + lane));
          },
          w.lane());
    if (kind == kCoded) clear(w, told.code, (size + 6) / 4);
    w.sync();
    if (kind == kBits) take_bits(w, n, any, told);
    if (kind == kCoded) divide(w, source.tree(p), n, size - 1, told.leaves[p], told);
    if (kind != kStored) w.sync();
    // A part for each warp.
    const uint32_t bytes = size - head, each = (bytes + 4 * kWarps - 1) / (4 * kWarps) * 4;
    const uint32_t begin = each * w.warp();
    const std::byte* const from = kind == kStored ? told.values : told.code;
    if (begin < bytes)
      cuda::copy_any(w, from + begin, to + head + begin,
                     bytes - begin < each ? bytes - begin : each);
  }

  template <class W>
  static WPR_ON_DEVICE void take_bits(W& w, uint32_t n, uint32_t mask, Told& told) {
    const uint32_t width = static_cast<uint32_t>(std::popcount(mask)), groups = (n + 7) / 8;
    for (uint32_t row = w.warp() * cuda::kLanes; row < groups; row += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            const uint32_t group = row + lane;
            if (group >= groups) return;
            uint32_t at = group * width;
            for (uint32_t rest = mask; rest != 0; rest &= rest - 1, ++at) {
              const uint32_t bit = static_cast<uint32_t>(std::countr_zero(rest));
              uint32_t byte = 0;
              for (uint32_t i = 8 * group; i < 8 * group + 8 && i < n; ++i)
                byte |= (static_cast<uint32_t>(told.values[i]) >> bit & 1) << i % 8;
              told.code[at] = static_cast<std::byte>(byte);
            }
          },
          w.lane());
  }

  // The partition code, level by level: a value finds its place in a list by what was stored of
  // the levels above.
  template <class W>
  WPR_ON_DEVICE void divide(W& w, const TreeTable& tree, uint32_t n, uint32_t size,
                            const uint16_t* leaves, Told& told) const {
    if (w.warp() == 0) place_nodes(w, tree, leaves, told);
    w.sync();
    for (uint32_t level = 0; level < tree.depth; ++level) {
      for (uint32_t row = w.warp() * cuda::kLanes; row < n; row += kWarps * cuda::kLanes)
        w.each(
            [&](uint32_t lane) {
              if (row + lane >= n) return;
              const uint32_t leaf = tree.leaf[static_cast<uint32_t>(told.values[row + lane])];
              if (tree.length[leaf] <= level) return;
              const uint32_t code = tree.code[leaf];
              if ((code >> (kMostLength - 1 - level) & 1) == 0) return;
              const uint32_t bit = bit_of<W>(tree, told, code, level, row + lane);
              W::set_bits(told.code + bit / 32 * 4, 1u << bit % 32);
            },
            w.lane());
      w.sync();
      sum_ones(w, (size + 3) / 4, told);
      w.sync();
    }
    if (leaves[tree.escape + 1] == leaves[tree.escape]) return;
    const uint32_t length = tree.length[tree.escape], code = tree.code[tree.escape];
    for (uint32_t row = w.warp() * cuda::kLanes; row < n; row += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (row + lane >= n) return;
            const uint32_t value = static_cast<uint32_t>(told.values[row + lane]);
            if (tree.leaf[value] != tree.escape) return;
            const uint32_t at = bit_of<W>(tree, told, code, length, row + lane);
            W::set_bits(told.code + at / 4 * 4, value << at % 4 * 8);
          },
          w.lane());
  }

  // Where nodes stand, and what has no code; by one warp.
  template <class W>
  static WPR_ON_DEVICE void place_nodes(W& w, const TreeTable& tree, const uint16_t* leaves,
                                        Told& told) {
    constexpr uint32_t kEach = kMostLeaves / cuda::kLanes;
    const uint32_t escapes = uint32_t{leaves[tree.escape + 1]} - leaves[tree.escape];
    const auto own = w.map(
        [&](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t k = kEach * lane; k < kEach * lane + kEach && k < tree.n_nodes; ++k)
            sum += node_size(tree.node[k], leaves);
          return sum;
        },
        w.lane());
    uint32_t all = 0;
    const auto before = cuda::sums_before(w, own, &all);
    w.each(
        [&](uint32_t lane, uint32_t sum) {
          for (uint32_t k = kEach * lane; k < kEach * lane + kEach && k < tree.n_nodes; ++k) {
            if (k == tree.escape_before) told.escapes_at = static_cast<uint16_t>(sum);
            told.node_at[k] = static_cast<uint16_t>(sum + (k >= tree.escape_before ? escapes : 0));
            sum += node_size(tree.node[k], leaves);
          }
          if (lane == 0 && tree.escape_before == tree.n_nodes)
            told.escapes_at = static_cast<uint16_t>(all);
        },
        w.lane(), before);
  }

  // The bit that value i has in its node of a level; below its leaf, which is the escape's, the
  // byte.
  template <class W>
  static WPR_ON_DEVICE uint32_t bit_of(const TreeTable& tree, const Told& told, uint32_t code,
                                       uint32_t level, uint32_t i) {
    int16_t k = 0;
    for (uint32_t d = 0; d < level; ++d) {
      const uint32_t begin = 8 * uint32_t{told.node_at[k]};
      const uint32_t ones = ones_between<W>(told, begin, begin + i);
      const bool right = (code >> (kMostLength - 1 - d) & 1) != 0;
      i = right ? ones : i - ones;
      k = right ? tree.node[k].right : tree.node[k].left;
    }
    return k == kEscapeLeaf ? told.escapes_at + i : 8 * uint32_t{told.node_at[k]} + i;
  }
  // Of bits that are one node's: others in the same words may be written meanwhile.
  template <class W>
  static WPR_ON_DEVICE uint32_t ones_between(const Told& told, uint32_t begin, uint32_t end) {
    const uint32_t first = begin / 32, last = end / 32;
    const auto bits = [&](uint32_t i) { return W::peek(told.code + 4 * i); };
    const uint32_t head = bits(first) >> begin % 32 << begin % 32;
    const uint32_t below = (1u << end % 32) - 1;
    if (first == last) return static_cast<uint32_t>(std::popcount(head & below));
    return static_cast<uint32_t>(std::popcount(head) + std::popcount(bits(last) & below)) +
           ((uint32_t{told.ones[last]} - told.ones[first + 1]) & 0xFFFF);
  }

  // Ones before each of `words` words of the code, by all warps.
  template <class W>
  static WPR_ON_DEVICE void sum_ones(W& w, uint32_t words, Told& told) {
    const uint32_t first = kLaneWords * cuda::kLanes * w.warp();
    const auto ones_in = [&](uint32_t i) {
      return static_cast<uint32_t>(std::popcount(cuda::get<uint32_t>(told.code + 4 * i)));
    };
    const auto own = w.map(
        [&](uint32_t lane) {
          uint32_t sum = 0;
          for (uint32_t i = first + kLaneWords * lane, end = i + kLaneWords; i < end && i < words;
               ++i)
            sum += ones_in(i);
          return sum;
        },
        w.lane());
    uint32_t all = 0;
    const auto before = cuda::sums_before(w, own, &all);
    once(w, [&told, all, warp = w.warp()] { told.sums[warp] = all; });
    w.sync();
    uint32_t base = 0;
    for (uint32_t i = 0; i < w.warp(); ++i) base += told.sums[i];
    w.each(
        [&](uint32_t lane, uint32_t sum) {
          sum += base;
          for (uint32_t i = first + kLaneWords * lane, end = i + kLaneWords; i < end && i < words;
               ++i) {
            told.ones[i] = static_cast<uint16_t>(sum);
            sum += ones_in(i);
          }
        },
        w.lane(), before);
  }
};

// What stands before and behind the chunks, and the size.
struct PutEnds {
  static constexpr unsigned kWarps = 1;
  static constexpr uint64_t kEach = 4096;  // bytes of the lines' bitmap, a block's
  static constexpr uint64_t blocks(const EncodeRoom& room) {
    return room.bitmap_size() / kEach + 1;
  }
  Encoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Making& making = own.making();
    const cuda::Task& task = own.task;
    const uint64_t lines = making.has_lines != 0 ? own.room.bitmap_size() : 0;
    const uint64_t head = 1 + lines + making.marks_head_size;
    const uint64_t end = making.end != 0 ? making.end : head + making.plan_head_size;
    const uint64_t tail = making.body_size - making.n_body * own.room.size;
    if (end + tail > task.code_size) return once(w, [&task] { task.report->full = 1; });
    const uint64_t first = w.block() * kEach;
    if (first < lines)
      cuda::copy_any(w, task.scratch + own.room.bitmap + first, task.code + 1 + first,
                     lines - first < kEach ? lines - first : kEach);
    if (w.block() != 0) return;
    cuda::copy_any(w, making.marks_head, task.code + 1 + lines, making.marks_head_size);
    cuda::copy_any(w, own.body() + making.n_body * own.room.size, task.code + end, tail);
    const uint32_t flags = making.look[making.leaves_out].flags;
    once(w, [&task, flags, written = end + tail] {
      task.code[0] = static_cast<std::byte>(flags);
      task.report->written = written;
    });
  }
};

// ---- launches -------------------------------------------------------------------------------

template <typename Word, class D>
Status encode_on(D& device, const cuda::Task& task) {
  if (task.raw_size == 0) return {};
  const Encoding own = {task, EncodeRoom(sizeof(Word), task.raw_size)};
  const EncodeRoom& room = own.room;
  WPR_TRY(device.launch(FindLines{own}, room.line_warps()));
  constexpr uint64_t kLines = 32 * GatherLines::kWarps;
  WPR_TRY(device.launch(GatherLines{own}, (room.lines + kLines - 1) / kLines));
  const uint64_t samples = CountSample<Word>::blocks(room.n_most);
  for (const bool others : {false, true}) {
    if (others && room.n_most > 0) {
      WPR_TRY(device.launch(MarkElements<Word>{own}, room.mark_warps()));
      WPR_TRY(device.launch(CountMarks{own}, EncodeRoom::chunks_of(room.marks_most)));
    }
    if (sizeof(Word) == 8)
      WPR_TRY(
          device.launch(FindBase{own, others}, std::min<uint64_t>(room.n_most / 1024 + 1, 1024)));
    WPR_TRY(device.launch(CountSample<Word>{own, others}, samples));
    WPR_TRY(device.launch(Choose{own, others}, 1));
  }
  WPR_TRY(device.launch(PutPlan{own}, 1));
  if (room.n_most > 0) WPR_TRY(device.launch(PutChunks<Word>{own}, room.most_chunks()));
  return device.launch(PutEnds{own}, PutEnds::blocks(room));
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
