// SPDX-License-Identifier: Apache-2.0
// The decoder of warp.hpp. One lane walks over the payload, from part to part and from node to
// node: of each it asks how many ones there are, which was counted before. Then blocks have a chunk
// each, and every value finds its own way. Long because the walk knows all that a payload has.
#pragma once

#include "codecs/planes/warp_trees.hpp"

namespace wirepress {
namespace {
namespace planes {

// A node in a chunk: where its bits begin, in bytes behind its plane's, and the ones before them.
struct NodePlace {
  uint32_t begin, ones;
};
// A plane's bytes of a chunk.
struct Part {
  uint64_t at;          // in the code
  uint32_t escapes_at;  // behind that, values that have no code
  uint8_t kind, value;  // the value that all are, or the mask
  NodePlace node[kMostLeaves];
};

// What the walk has found, in scratch memory.
struct Found {
  uint64_t body_size, n_body, n;  // bytes, elements, those that are there
  uint64_t at;                    // behind the bits that say which
  uint32_t good, flags, base;     // not good: what the walk has come to is no code
  Mode mode[kMostPlanes], marks_mode;
  TreeTable tree[kMostPlanes], marks_tree;
  uint16_t count[kMostLeaves];  // of the node that the walk comes to
};

// Scratch memory of a decoder, and the sizes that it is for.
struct DecodeRoom {
  uint32_t size;  // of an element
  uint64_t n_most, chunks, marks_most, marks_chunks, code_most;
  size_t found, code_places, marks_places, code_ones, marks, marks_ones, parts, marks_parts,
      elements, all;

  constexpr DecodeRoom(uint32_t element, uint64_t raw_size)
      : size(element),
        n_most(raw_size / element),
        chunks((n_most + kChunk - 1) / kChunk),
        marks_most((n_most + 7) / 8),
        marks_chunks((marks_most + kChunk - 1) / kChunk),
        code_most(most(raw_size)),
        found(0),
        code_places(up(sizeof(Found))),
        marks_places(code_places + up(cuda::Places::size(counters(code_most)))),
        code_ones(marks_places + up(cuda::Places::size(counters(marks_most)))),
        marks(code_ones + up(4 * Ones::steps(code_most))),
        marks_ones(marks + up(marks_most)),
        parts(marks_ones + up(4 * Ones::steps(marks_most))),
        marks_parts(parts + up(chunks * kMostPlanes * sizeof(Part))),
        elements(marks_parts + up(marks_chunks * sizeof(Part))),
        all(elements + up(raw_size)) {}

  constexpr size_t zeros() const { return code_ones; }
  static constexpr size_t up(size_t size) { return (size + 15) / 16 * 16; }
  static constexpr uint64_t counters(uint64_t size);

 private:
  // The largest code that a decoder takes: a value has 11 bits and a byte, a node begins a byte.
  constexpr uint64_t most(uint64_t raw_size) const {
    const uint64_t lists = (chunks * kMostPlanes + marks_chunks) * (kMostLeaves + 16);
    const uint64_t tables = (kMostPlanes + 1) * (4 + kSymbols / 2);
    const uint64_t values = raw_size + 2 * (marks_most + kChunk);
    return 16 + raw_size / kLine + tables + lists + values * 19 / 8;
  }
};

// What kernels of one task have.
struct Decoding {
  cuda::Task task;
  DecodeRoom room;

  WPR_ON_DEVICE Found* found() const { return reinterpret_cast<Found*>(task.scratch + room.found); }
  WPR_ON_DEVICE Ones code() const {
    return {task.code, task.code_size,
            reinterpret_cast<const uint32_t*>(task.scratch + room.code_ones)};
  }
  WPR_ON_DEVICE Ones marks() const {
    const Found& own = *found();
    return {task.scratch + room.marks, (own.flags & kElements) != 0 ? (own.n_body + 7) / 8 : 0,
            reinterpret_cast<const uint32_t*>(task.scratch + room.marks_ones)};
  }
  WPR_ON_DEVICE Part* parts(uint64_t chunk) const {
    return reinterpret_cast<Part*>(task.scratch + room.parts) + chunk * kMostPlanes;
  }
  WPR_ON_DEVICE Part* marks_part(uint64_t chunk) const {
    return reinterpret_cast<Part*>(task.scratch + room.marks_parts) + chunk;
  }
  WPR_ON_DEVICE bool good() const { return found()->good != 0; }
  WPR_ON_DEVICE bool has_lines() const { return (found()->flags & kLines) != 0; }
  WPR_ON_DEVICE bool has_marks() const { return (found()->flags & kElements) != 0; }
  static constexpr uint64_t kLinesAt = 1;  // of the bitmap
};

struct CodeOnes {
  Decoding own;
  WPR_ON_DEVICE std::byte* places() const { return own.task.scratch + own.room.code_places; }
  WPR_ON_DEVICE Ones ones() const { return own.code(); }
};
struct MarksOnes {
  Decoding own;
  WPR_ON_DEVICE std::byte* places() const { return own.task.scratch + own.room.marks_places; }
  WPR_ON_DEVICE Ones ones() const { return own.marks(); }
};
constexpr uint64_t DecodeRoom::counters(uint64_t size) { return CountOnes<CodeOnes>::blocks(size); }

// ---- the walk -------------------------------------------------------------------------------

// By one lane.
class Walker {
 public:
  WPR_ON_DEVICE explicit Walker(const Decoding& own) : own_(own), code_(own.code()) {}

  // As decode() of planes.hpp up to the elements that are there. False: corrupt.
  WPR_ON_DEVICE bool begin() {
    Found& found = *own_.found();
    const uint64_t raw_size = own_.task.raw_size;
    uint32_t flags = 0;
    if (!take(&flags) || flags > kFlags) return false;
    found.flags = flags;
    found.body_size = raw_size;
    if ((flags & kLines) != 0 && !take_lines(raw_size, &found.body_size)) return false;
    found.n = found.n_body = found.body_size / own_.room.size;
    if ((flags & kElements) != 0) {
      if (!take_plane(&found.marks_mode, &found.marks_tree)) return false;
      const uint64_t size = (found.n_body + 7) / 8;
      if (found.marks_mode == kRaw) {
        if (size > left()) return false;
        for (uint64_t i = 0; i * kChunk < size; ++i) {
          Part& part = *own_.marks_part(i);
          part.at = at_ + i * kChunk;
          part.kind = kStored;
        }
        at_ += size;
      } else {
        for (uint64_t i = 0; i * kChunk < size; ++i)
          if (!take_part(found.marks_mode, found.marks_tree, here(size, i), own_.marks_part(i)))
            return false;
      }
    }
    found.at = at_;
    return true;
  }

  WPR_ON_DEVICE bool end() {
    Found& found = *own_.found();
    at_ = found.at;
    if ((found.flags & kElements) != 0) {
      const Ones marks = own_.marks();
      const uint64_t rest = found.n_body % 8;
      if (rest != 0 && static_cast<uint32_t>(marks.bytes[found.n_body / 8]) >> rest != 0)
        return false;
      found.n = marks.up_to(found.n_body) - marks.before[0];
    }
    if (found.n == 0 && (found.flags & (kSigns | kDifferences)) != 0) return false;
    if (found.n > 0 && !take_plan(&found)) return false;
    for (uint64_t i = 0; i * kChunk < found.n; ++i)
      if (!take_chunk(found, here(found.n, i), own_.parts(i))) return false;
    return left() == found.body_size - found.n_body * own_.room.size;
  }

 private:
  WPR_ON_DEVICE uint64_t left() const { return own_.task.code_size - at_; }
  static constexpr uint32_t here(uint64_t n, uint64_t chunk) {
    return static_cast<uint32_t>(n - chunk * kChunk < kChunk ? n - chunk * kChunk : kChunk);
  }
  WPR_ON_DEVICE uint32_t byte(uint64_t at) const { return static_cast<uint32_t>(code_.bytes[at]); }
  WPR_ON_DEVICE bool take(uint32_t* value) {
    if (left() == 0) return false;
    *value = byte(at_++);
    return true;
  }

  WPR_ON_DEVICE bool take_lines(uint64_t raw_size, uint64_t* body_size) {
    const uint64_t lines = (raw_size + kLine - 1) / kLine, size = (lines + 7) / 8;
    if (left() < size) return false;
    if (lines % 8 != 0 && byte(at_ + size - 1) >> lines % 8 != 0) return false;
    // Up to 2^32 - 1 lines, 256 GiB.
    const uint32_t kept = code_.up_to(8 * (at_ + size)) - code_.up_to(8 * at_);
    *body_size = uint64_t{kept} * kLine;
    if (code_.bit(8 * at_ + lines - 1) != 0) *body_size -= lines * kLine - raw_size;
    at_ += size;
    return raw_size - *body_size > size;
  }

  WPR_ON_DEVICE bool take_plan(Found* found) {
    const uint32_t size = own_.room.size;
    found->base = 0;
    if (size == 8) {
      uint32_t low = 0, high = 0;
      if (!take(&low) || !take(&high)) return false;
      found->base = low | high << 8;
      if (found->base > 2046) return false;
    }
    const bool signs = (found->flags & kSigns) != 0;
    for (uint32_t p = 0; p < size + signs; ++p)
      if (!take_plane(&found->mode[p], &found->tree[p])) return false;
    if (signs && found->mode[0] == kRaw) return false;
    return (found->flags & kDifferences) == 0 || found->mode[size - 1] != kRaw;
  }

  WPR_ON_DEVICE bool take_plane(Mode* mode, TreeTable* tree) {
    uint32_t value = 0;
    if (!take(&value) || value > kTable) return false;
    *mode = static_cast<Mode>(value);
    return value != kTable || take_table(tree);
  }
  WPR_ON_DEVICE bool take_table(TreeTable* tree) {
    uint32_t first = 0, last = 0;
    if (!take(&first) || !take(&last) || first > last) return false;
    const uint32_t n = last - first + 2;  // and the escape's, which comes first
    const uint64_t table = at_;
    if (left() < (n + 1) / 2) return false;
    at_ += (n + 1) / 2;
    const auto nibble = [=, this](uint32_t i) { return byte(table + i / 2) >> i % 2 * 4 & 15; };
    uint32_t sum = 0, leaves = 0;
    for (uint32_t i = 0; i < (n + 1) / 2 * 2; ++i) {
      const uint32_t length = nibble(i);
      if (length > kMostLength || (i >= n && length != 0)) return false;
      if (length == 0) continue;
      sum += static_cast<uint32_t>(kUnits) >> length;
      ++leaves;
    }
    if (sum != kUnits || leaves > kMostLeaves) return false;
    if (nibble(0) == 0 || nibble(1) == 0 || nibble(n - 1) == 0) return false;
    build(tree, first, last, [=](uint32_t s) { return nibble(s == kEscape ? 0 : s - first + 1); });
    return true;
  }

  // Where the planes of a chunk stand.
  WPR_ON_DEVICE bool take_chunk(const Found& found, uint32_t n, Part* parts) {
    const uint32_t size = own_.room.size, planes = size + ((found.flags & kSigns) != 0);
    const auto values_of = [=](uint32_t p) { return p == size ? (n + 7) / 8 : n; };
    for (uint32_t p = 0; p < planes; ++p) {
      if (found.mode[p] != kRaw) continue;
      if (values_of(p) > left()) return false;
      parts[p].at = at_;
      parts[p].kind = kStored;
      at_ += values_of(p);
    }
    for (uint32_t p = 0; p < planes; ++p)
      if (found.mode[p] != kRaw &&
          !take_part(found.mode[p], found.tree[p], values_of(p), &parts[p]))
        return false;
    return true;
  }

  WPR_ON_DEVICE bool take_part(Mode mode, const TreeTable& tree, uint32_t n, Part* part) {
    uint32_t kind = 0, value = 0;
    if (!take(&kind)) return false;
    if ((kind == kConstant || kind == kBits) && !take(&value)) return false;
    part->at = at_;
    part->kind = static_cast<uint8_t>(kind);
    part->value = static_cast<uint8_t>(value);
    switch (kind) {
      case kConstant:
        return true;
      case kStored:
        if (n > left()) return false;
        at_ += n;
        return true;
      case kBits:
        return value != 0 && take_bits(static_cast<uint32_t>(std::popcount(value)), n);
      case kCoded:
        return mode == kTable && take_tree(tree, n, part);
      default:
        return false;
    }
  }
  WPR_ON_DEVICE bool take_bits(uint32_t width, uint32_t n) {
    const uint32_t size = width * ((n + 7) / 8);
    if (size > left()) return false;
    at_ += size;
    for (uint32_t i = 1; n % 8 != 0 && i <= width; ++i)
      if (byte(at_ - i) >> n % 8 != 0) return false;
    return true;
  }

  // Nodes in the order in which they stand, each of which says how much its children have.
  WPR_ON_DEVICE bool take_tree(const TreeTable& tree, uint32_t n, Part* part) {
    uint16_t* const count = own_.found()->count;
    count[0] = static_cast<uint16_t>(n);
    uint32_t escapes = 0;
    for (uint32_t k = 0;; ++k) {
      if (k == tree.escape_before) {
        if (escapes > left()) return false;
        part->escapes_at = static_cast<uint32_t>(at_ - part->at);
        at_ += escapes;
      }
      if (k == tree.n_nodes) return true;
      const uint32_t here = count[k], size = (here + 7) / 8;
      if (size > left()) return false;
      if (here % 8 != 0 && byte(at_ + size - 1) >> here % 8 != 0) return false;
      if (counted_to_ != at_) counted_ = code_.up_to(8 * at_);
      const uint32_t before = counted_;
      part->node[k] = {static_cast<uint32_t>(at_ - part->at), before};
      at_ += size;
      counted_ = code_.up_to(8 * at_);
      counted_to_ = at_;
      const uint32_t ones = counted_ - before;
      const TreeTable::Node& node = tree.node[k];
      if (is_inner(node.left)) count[node.left] = static_cast<uint16_t>(here - ones);
      if (is_inner(node.right)) count[node.right] = static_cast<uint16_t>(ones);
      if (node.left == kEscapeLeaf) escapes = here - ones;
      if (node.right == kEscapeLeaf) escapes = ones;
    }
  }

  const Decoding& own_;
  Ones code_;
  uint64_t at_ = 0;
  uint64_t counted_to_ = ~uint64_t{0};  // a node's end, which is the next one's beginning
  uint32_t counted_ = 0;                // ones before that
};

// Twice: to the bits that say which elements are there, and, when those are known, to the end.
template <bool kEnds>
struct Walk {
  static constexpr unsigned kWarps = 1;
  Decoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (kEnds && !own.good()) return;
    const Decoding& all = own;
    once(w, [&all] {
      Walker walker(all);
      const bool good = kEnds ? walker.end() : walker.begin();
      all.found()->good = good;
      if (!good) all.task.report->first_bad = 0;
    });
  }
};

// ---- chunks ---------------------------------------------------------------------------------

// Value i of a plane's part.
static WPR_ON_DEVICE uint32_t value_at(const Ones& code, const TreeTable& tree, const Part& part,
                                       uint32_t i) {
  const std::byte* const bytes = code.bytes + part.at;
  switch (part.kind) {
    case kConstant:
      return part.value;
    case kStored:
      return static_cast<uint32_t>(bytes[i]);
    case kBits: {
      const uint32_t width = static_cast<uint32_t>(std::popcount(uint32_t{part.value}));
      uint32_t value = 0, k = i / 8 * width;
      for (uint32_t rest = part.value; rest != 0; rest &= rest - 1, ++k)
        value |= (static_cast<uint32_t>(bytes[k]) >> i % 8 & 1) << std::countr_zero(rest);
      return value;
    }
    default:
      break;
  }
  uint32_t at = i;
  for (int16_t k = 0;;) {
    const NodePlace place = part.node[k];
    const uint64_t bit = 8 * (part.at + place.begin) + at;
    const uint32_t ones = code.up_to(bit) - place.ones;
    const bool right = code.bit(bit) != 0;
    at = right ? ones : at - ones;
    k = right ? tree.node[k].right : tree.node[k].left;
    if (is_inner(k)) continue;
    return k == kEscapeLeaf ? static_cast<uint32_t>(bytes[part.escapes_at + at])
                            : static_cast<uint32_t>(~k);
  }
}

// Which elements are there, bytes of bits.
struct ExpandMarks {
  static constexpr unsigned kWarps = 8;
  Decoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (!own.good() || !own.has_marks()) return;
    const uint64_t first = w.block() * kChunk;
    const Ones marks = own.marks(), code = own.code();
    const Part& part = *own.marks_part(w.block());
    const TreeTable& tree = own.found()->marks_tree;
    std::byte* const to = const_cast<std::byte*>(marks.bytes);
    for (uint32_t i = w.warp() * cuda::kLanes; i < kChunk; i += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            if (first + i + lane < marks.size)
              to[first + i + lane] = static_cast<std::byte>(value_at(code, tree, part, i + lane));
          },
          w.lane());
  }
};

// A block has a chunk. Where a value depends on those before it, 32 are a lane's, and what comes
// before them is summed up; then words are put together in the order of memory.
template <typename Word>
struct ExpandChunks {
  static constexpr unsigned kWarps = kChunkWarps;
  static constexpr uint32_t kSize = sizeof(Word);
  struct Told {
    uint8_t upper[kChunk];         // sums within a lane's 32
    uint32_t before[kChunk / 32];  // and of those before them
    uint32_t signs[kChunk / 32];
    uint32_t sums[kWarps], turns[kWarps];
  };
  static constexpr size_t kShared = sizeof(Told);
  Decoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (!own.good()) return;
    const Found& found = *own.found();
    const uint64_t first = w.block() * kChunk;
    if (first >= found.n) return;
    const uint32_t n = static_cast<uint32_t>(found.n - first < kChunk ? found.n - first : kChunk);
    Told& told = *reinterpret_cast<Told*>(w.shared());
    if ((found.flags & (kSigns | kDifferences)) != 0) {
      undo(w, found, n, told);
      w.sync();
    }
    std::byte* const to = (found.flags & (kLines | kElements)) != 0
                              ? own.task.scratch + own.room.elements
                              : own.task.raw;
    join(w, found, n, told, to + first * kSize);
  }

 private:
  static constexpr uint32_t kSignAt = sign_bit(kSize);
  WPR_ON_DEVICE uint32_t value(const Found& found, uint32_t p, const Part* parts,
                               uint32_t i) const {
    return value_at(own.code(), found.tree[p], parts[p], i);
  }

  template <class W>
  WPR_ON_DEVICE void undo(W& w, const Found& found, uint32_t n, Told& told) const {
    const Part* const parts = own.parts(w.block());
    const uint32_t me = w.warp() * cuda::kLanes;
    const bool steps = (found.flags & kDifferences) != 0, signs = (found.flags & kSigns) != 0;
    const auto sum = w.map(
        [&](uint32_t lane) {
          uint32_t all = 0;
          const uint32_t begin = 32 * (me + lane);
          for (uint32_t i = begin; steps && i < begin + 32 && i < n; ++i) {
            all = (all + value(found, kSize - 1, parts, i) + 128) & 255;
            told.upper[i] = static_cast<uint8_t>(all);
          }
          return all;
        },
        w.lane());
    const auto changes = w.map(
        [&](uint32_t lane) {
          const uint32_t begin = 4 * (me + lane);
          uint32_t word = 0;
          for (uint32_t i = 0; signs && i < 4 && begin + i < (n + 7) / 8; ++i)
            word |= value(found, kSize, parts, begin + i) << 8 * i;
          return word;
        },
        w.lane());
    const uint32_t beyond = w.ballot(w.map(
        [=](uint32_t lane, uint32_t word) {
          const uint32_t begin = 32 * (me + lane);
          return begin < n && n - begin < 32 && word >> (n - begin) != 0;
        },
        w.lane(), changes));
    if (beyond != 0) w.at_most(&own.task.report->first_bad, w.block());
    // Each bit xor all below it; the last one turns those of the next lane.
    const auto chained = w.map(
        [](uint32_t word) {
          for (uint32_t by = 1; by < 32; by *= 2) word ^= word << by;
          return word;
        },
        changes);
    const uint32_t turns = w.ballot(w.map([](uint32_t word) { return word >> 31 != 0; }, chained));
    uint32_t all = 0;
    const auto before = cuda::sums_before(w, sum, &all);
    once(w, [&told, all, turns, warp = w.warp()] {
      told.sums[warp] = all;
      told.turns[warp] = static_cast<uint32_t>(std::popcount(turns)) & 1;
    });
    w.sync();
    uint32_t base = 0, turn = 0;
    for (uint32_t i = 0; i < w.warp(); ++i) base += told.sums[i], turn ^= told.turns[i];
    w.each(
        [&](uint32_t lane, uint32_t own_before, uint32_t word) {
          const uint32_t below = turns & ((1u << lane) - 1);
          const bool odd = ((static_cast<uint32_t>(std::popcount(below)) ^ turn) & 1) != 0;
          told.before[me + lane] = base + own_before;
          told.signs[me + lane] = odd ? ~word : word;
        },
        w.lane(), before, chained);
  }

  template <class W>
  WPR_ON_DEVICE void join(W& w, const Found& found, uint32_t n, const Told& told,
                          std::byte* to) const {
    const Part* const parts = own.parts(w.block());
    const bool steps = (found.flags & kDifferences) != 0, signs = (found.flags & kSigns) != 0;
    const uint64_t base = uint64_t{found.base} << 52;
    for (uint32_t row = w.warp() * cuda::kLanes; row < n; row += kWarps * cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            const uint32_t i = row + lane;
            if (i >= n) return;
            Word word = 0;
            WPR_UNROLL
            for (uint32_t p = 0; p < kSize; ++p) {
              const bool summed = steps && p == kSize - 1;
              const uint32_t byte =
                  summed ? (told.upper[i] + told.before[i / 32]) & 255 : value(found, p, parts, i);
              word = static_cast<Word>(
                  word | static_cast<Word>(Word{static_cast<uint8_t>(byte)} << 8 * p));
            }
            if (signs) {
              const Word sign = told.signs[i / 32] >> i % 32 & 1;
              word = static_cast<Word>((word & static_cast<Word>(~(Word{1} << kSignAt))) |
                                       static_cast<Word>(sign << kSignAt));
            }
            cuda::put(to + kSize * i, turn_back(word, base));
          },
          w.lane());
  }
};

// Elements to where they belong, zeros between them, and the last bytes.
template <typename Word>
struct Spread {
  static constexpr unsigned kWarps = 4;
  static constexpr uint32_t kSize = sizeof(Word), kTurns = 8;
  static constexpr uint64_t kEach = uint64_t{kTurns} * cuda::kLanes;
  static constexpr uint64_t blocks(uint64_t n) { return n / (kWarps * kEach) + 1; }
  Decoding own;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (!own.good()) return;
    const bool lines = own.has_lines(), marked = own.has_marks();
    const uint64_t n = own.task.raw_size / kSize;
    const Ones code = own.code(), marks = own.marks();
    const auto kept = [&](uint64_t line) {
      return !lines || code.bit(8 * Decoding::kLinesAt + line) != 0;
    };
    if (w.block() == 0 && w.warp() == 0) {
      const uint32_t tail = own.task.raw_size % kSize;
      const cuda::Task& task = own.task;
      w.each(
          [&](uint32_t lane) {
            if (lane < tail)
              task.raw[kSize * n + lane] =
                  kept(kSize * n / kLine) ? task.code[task.code_size - tail + lane] : std::byte{0};
          },
          w.lane());
    }
    if (!lines && !marked) return;
    const std::byte* const elements = own.task.scratch + own.room.elements;
    std::byte* const raw = own.task.raw;
    const uint32_t first_line = lines ? code.up_to(8 * Decoding::kLinesAt) : 0;
    const uint32_t first_mark = marked ? marks.before[0] : 0;
    const uint64_t begin = (w.block() * kWarps + w.warp()) * kEach;
    for (uint64_t row = begin; row < begin + kEach && row < n; row += cuda::kLanes)
      w.each(
          [&](uint32_t lane) {
            constexpr uint32_t kInLine = kLine / kSize;
            const uint64_t i = row + lane;
            if (i >= n) return;
            const uint64_t line = i / kInLine;
            Word word = 0;
            if (kept(line)) {
              uint64_t at = i;
              if (lines)
                at = uint64_t{code.up_to(8 * Decoding::kLinesAt + line) - first_line} * kInLine +
                     i % kInLine;
              const bool there = !marked || marks.bit(at) != 0;
              if (there && marked) at = marks.up_to(at) - first_mark;
              if (there) word = cuda::get<Word>(elements + kSize * at);
            }
            cuda::put(raw + kSize * i, word);
          },
          w.lane());
  }
};

// ---- launches -------------------------------------------------------------------------------

template <typename Word, class D>
Status decode_on(D& device, const cuda::Task& task) {
  if (task.raw_size == 0) return {};
  const Decoding own = {task, DecodeRoom(sizeof(Word), task.raw_size)};
  const auto& room = own.room;
  using Code = CountOnes<CodeOnes>;
  using Marks = CountOnes<MarksOnes>;
  WPR_TRY(device.launch(Code{{own}}, Code::blocks(task.code_size)));
  WPR_TRY(device.launch(Walk<false>{own}, 1));
  if (room.marks_chunks > 0) WPR_TRY(device.launch(ExpandMarks{own}, room.marks_chunks));
  WPR_TRY(device.launch(Marks{{own}}, Marks::blocks(room.marks_most)));
  WPR_TRY(device.launch(Walk<true>{own}, 1));
  if (room.chunks > 0) WPR_TRY(device.launch(ExpandChunks<Word>{own}, room.chunks));
  return device.launch(Spread<Word>{own}, Spread<Word>::blocks(room.n_most));
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
