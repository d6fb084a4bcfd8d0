// SPDX-License-Identifier: Apache-2.0
// What the kernels of tbq share: the payload around the marks of a chunk (spec.md). A kernel marks
// and expands; forms are chosen, written, read and added here. Long because the three forms share
// their parts and are compiled once for each kernel.
//
// A chunk in planes: for each group of 32 values `planes` words with the bits of the magnitudes,
// lowest first, and one with the signs. Marks are planes with one magnitude bit.
//
// A kernel is a class C, made from a Rule, with internal linkage:
//
//   template <bool kFeedback>   // writes marks; without feedback residual is nullptr
//   Marks mark(const std::byte* src, std::byte* residual, const Run&, std::byte* groups) const;
//   template <bool kAdd>        // magnitudes times level
//   static void expand(const std::byte* groups, size_t planes, size_t padded, float level,
//                      std::byte* dst);
//   // Entries for marks; kListSlack bytes behind the last may be written.
//   static void list(const std::byte* groups, size_t n, std::byte* at);
//   template <bool kAdd>        // n times x; n need not be whole groups
//   static void fill(float x, size_t n, std::byte* dst);
#pragma once

#include <cmath>

#include "base/bytes.hpp"
#include "codecs/common/chunked/bit_planes.hpp"

namespace wirepress::tbq {

constexpr size_t kValues = 4096;
constexpr size_t kMostPlanes = 7;  // sums up to 127
constexpr uint32_t kMostMagnitude = 127;
constexpr uint32_t kMostListed = 8;  // the magnitude that an entry of a list can hold
constexpr uint32_t kNanHead = 0xFFFFFFFF;
constexpr size_t kListSlack = 64;  // bytes that listing may spoil behind the last entry
constexpr size_t kMarkSize = 8;    // bytes of marks of a group
constexpr unsigned kPositionBits = 12;

enum ParamIndex { kTau = 0, kOf = 1 };
enum Of { kMean = 0, kOne = 1 };

struct Rule {
  explicit Rule(const Args& args) : tau(rounded(args.real(kTau))), mean(args.value[kOf] == kMean) {}

  // 16 significant bits: multiples up to kMostMagnitude are float32 numbers, and sums exact.
  static float rounded(double tau) {
    int exponent;
    const double fraction = std::frexp(tau, &exponent);
    return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 16)), exponent - 16));
  }
  // The threshold, of the sums of absolute values. Not finite where a value is not.
  float level(const chunks::Sums& sums, size_t n) const { return level(chunks::total(sums), n); }
  constexpr float level(float sum, size_t n) const { return tau * (sum / static_cast<float>(n)); }
  // Absolute values whose word is above this are marked: none where the level is 0.
  static constexpr uint32_t floor_of(float level) {
    return level > 0 ? chunks::word_of(level) - 1 : chunks::kInfinity;
  }
  constexpr size_t head_size() const { return mean ? 8 : 4; }

  float tau;
  bool mean;
};

struct Marks {
  bool finite;
  float level;   // what a mark stands for
  size_t count;  // values that are not 0
};

constexpr size_t groups_of(size_t n) { return chunks::padded(n) / chunks::kGroup; }
constexpr size_t list_size(size_t count) { return (count + 1) / 2 * 4; }
constexpr size_t planes_size(size_t planes, size_t n) { return 4 * (planes + 1) * groups_of(n); }
// Whether `count` values are listed, which are small enough for it.
constexpr bool list_pays(size_t count, size_t planes, size_t n) {
  return list_size(count) < planes_size(planes, n);
}
// An entry of a list is a position, a magnitude less 1, and a sign.
constexpr uint32_t entry_of(uint32_t position, uint32_t magnitude, uint32_t negative) {
  return position | (magnitude - 1) << kPositionBits | negative << 15;
}
constexpr uint32_t entry_position(uint32_t entry) { return entry & (kValues - 1); }
constexpr uint32_t entry_magnitude(uint32_t entry) { return (entry >> kPositionBits & 7) + 1; }
constexpr float entry_value(uint32_t entry, float level) {
  const float size = static_cast<float>(entry_magnitude(entry)) * level;
  return chunks::float_of(chunks::word_of(size) ^ entry >> 15 << 31);  // no branch on the sign
}

using PlaneBuffer = std::array<std::byte, planes_size(kMostPlanes, kValues)>;

// With room for sums.
[[maybe_unused]] static size_t bound(const Args& args, size_t n) {
  const size_t values = n / 4;
  const size_t n_chunks = (values + kValues - 1) / kValues;
  return n_chunks * Rule(args).head_size() + planes_size(kMostPlanes, values) + n % 4;
}

// Magnitude and sign of the values of a group that are not 0, in order:
// function(index in the group, magnitude, negative).
template <typename Function>
static inline void each_marked(const std::byte* group, size_t planes, Function function) {
  uint32_t plane[kMostPlanes], any = 0;
  for (size_t p = 0; p < planes; ++p) any |= plane[p] = chunks::read<uint32_t>(group + 4 * p);
  const uint32_t negative = chunks::read<uint32_t>(group + 4 * planes);
  for (; any != 0; any &= any - 1) {
    const int i = std::countr_zero(any);
    uint32_t magnitude = 0;
    for (size_t p = 0; p < planes; ++p) magnitude |= (plane[p] >> i & 1) << p;
    function(static_cast<uint32_t>(i), magnitude, negative >> i & 1);
  }
}

// ---- writing --------------------------------------------------------------------------------

// Takes `size` bytes from the front of `dst`; nullptr: they are not there.
static inline std::byte* take_room(Bytes* dst, size_t size) {
  if (dst->size() < size) return nullptr;
  std::byte* at = dst->data();
  *dst = dst->subspan(size);
  return at;
}

static inline void write_head(const Rule& rule, uint32_t head, float level, std::byte* at) {
  chunks::write(at, head);
  if (rule.mean) chunks::write(at + 4, level);
}

static inline bool write_nan(const Rule& rule, Bytes* dst) {
  std::byte* at = take_room(dst, rule.head_size());
  if (at != nullptr) write_head(rule, kNanHead, chunks::float_of(chunks::kNan), at);
  return at != nullptr;
}

// Entries of marks, four at a time: how many a group has cannot be predicted.
static inline void list_marks(const std::byte* groups, size_t n, std::byte* at) {
  for (uint32_t first = 0; first < n; first += chunks::kGroup, groups += kMarkSize) {
    uint32_t marked = chunks::read<uint32_t>(groups);
    const uint64_t negative = chunks::read<uint32_t>(groups + 4);
    std::byte* next = at + 2 * std::popcount(marked);
    for (; at < next; at += 8) {
      for (size_t k = 0; k < 4; ++k, marked &= marked - 1) {
        const uint32_t i = static_cast<uint32_t>(std::countr_zero(marked));  // 32 behind the last
        const uint32_t sign = static_cast<uint32_t>(negative >> i & 1) << 15;
        chunks::write(at + 2 * k, static_cast<uint16_t>(first | i | sign));
      }
    }
    at = next;
  }
}

static inline void list_sums(const std::byte* groups, size_t planes, size_t n, std::byte* at) {
  for (uint32_t first = 0; first < n; first += chunks::kGroup, groups += 4 * (planes + 1)) {
    each_marked(groups, planes, [&](uint32_t i, uint32_t magnitude, uint32_t negative) {
      chunks::write(at, static_cast<uint16_t>(entry_of(first | i, magnitude, negative)));
      at += 2;
    });
  }
}

using List = void (*)(const std::byte* groups, size_t n, std::byte* at);

// A chunk of n values in the smaller form; list_one lists it if it has one plane. False: no room.
static inline bool write_chunk(List list_one, const Rule& rule, const std::byte* groups,
                               size_t planes, bool listable, const Marks& marks, size_t n,
                               Bytes* dst) {
  const size_t in_planes = planes_size(planes, n);
  const size_t in_list = list_size(marks.count);
  const bool list = listable && list_pays(marks.count, planes, n);
  std::byte* at = take_room(dst, rule.head_size() + (list ? in_list : in_planes));
  if (at == nullptr) return false;
  const size_t head = list ? marks.count : planes << 16;
  write_head(rule, static_cast<uint32_t>(head), marks.count == 0 ? 0 : marks.level, at);
  at += rule.head_size();
  if (list) {
    std::array<std::byte, planes_size(kMostPlanes, kValues) + kListSlack> entries;
    planes == 1 ? list_one(groups, n, entries.data())
                : list_sums(groups, planes, n, entries.data());
    std::memset(entries.data() + 2 * marks.count, 0, in_list - 2 * marks.count);
    std::memcpy(at, entries.data(), in_list);
  } else {
    std::memcpy(at, groups, in_planes);
  }
  return true;
}

// ---- reading --------------------------------------------------------------------------------

struct Chunk {
  bool nan = false;
  size_t planes = 0;  // 0: a list
  size_t count = 0;   // of its entries
  float level = 0;
  const std::byte* body = nullptr;
};

// Whether an encoder writes it, before a body for n values.
static constexpr bool valid_head(const Rule& rule, uint32_t head, uint32_t level, size_t n) {
  if (head == kNanHead) return !rule.mean || level == chunks::kNan;
  const size_t planes = head >> 16, count = head & 0xFFFF;
  if (planes > (rule.mean ? 1 : kMostPlanes)) return false;
  if (planes > 0 ? count != 0 : count > n) return false;
  return !rule.mean || (level < chunks::kInfinity && (level == 0) == (head == 0));
}
static constexpr size_t body_size(uint32_t head, size_t n) {
  if (head == kNanHead) return 0;
  return head >> 16 > 0 ? planes_size(head >> 16, n) : list_size(head & 0xFFFF);
}

static inline uint32_t most_listed(const Chunk& chunk) {
  uint32_t most = 1;
  for (size_t i = 0; i < chunk.count; ++i)
    most = std::max(most, entry_magnitude(chunks::read<uint16_t>(chunk.body + 2 * i)));
  return most;
}

static inline bool valid_list(const Rule& rule, const Chunk& chunk, size_t n) {
  uint32_t next = 0, magnitudes = 0, wrong = 0;
  for (size_t i = 0; i < chunk.count; ++i) {
    const uint32_t entry = chunks::read<uint16_t>(chunk.body + 2 * i);
    const uint32_t position = entry_position(entry);
    wrong |= position - next;  // its uppermost bit, where they do not rise
    next = position + 1;
    magnitudes |= entry >> kPositionBits & 7;
  }
  if (wrong >> 31 != 0 || next > n || (rule.mean && magnitudes != 0)) return false;
  if (chunk.count % 2 != 0 && chunks::read<uint16_t>(chunk.body + 2 * chunk.count) != 0)
    return false;
  // The larger form of two would be a second code for the same.
  const uint32_t most = magnitudes == 0 ? 1 : most_listed(chunk);
  return list_pays(chunk.count, static_cast<size_t>(std::bit_width(most)), n);
}

static inline bool valid_planes(const Chunk& chunk, size_t n) {
  const size_t group_size = 4 * (chunk.planes + 1);
  const uint32_t used = n % chunks::kGroup == 0 ? ~0u : (1u << n % chunks::kGroup) - 1;
  uint32_t wrong = 0, top = 0;
  for (size_t g = 0; g < groups_of(n); ++g) {
    const std::byte* group = chunk.body + g * group_size;
    uint32_t any = 0;
    for (size_t p = 0; p < chunk.planes; ++p) {
      const uint32_t word = chunks::read<uint32_t>(group + 4 * p);
      any |= word;
      top |= p + 1 == chunk.planes ? word : 0;
    }
    wrong |= chunks::read<uint32_t>(group + 4 * chunk.planes) & ~any;
    if (g + 1 == groups_of(n)) wrong |= any & ~used;
  }
  return wrong == 0 && top != 0;
}

// False: no encoder wrote this.
static inline bool read_chunk(const Rule& rule, Reader* in, size_t n, Chunk* chunk) {
  uint32_t head;
  uint32_t level = chunks::word_of(rule.tau);
  if (!in->read(&head) || (rule.mean && !in->read(&level))) return false;
  if (!valid_head(rule, head, level, n)) return false;
  chunk->level = chunks::float_of(level);
  chunk->nan = head == kNanHead;
  if (chunk->nan) return true;
  chunk->planes = head >> 16;
  chunk->count = head & 0xFFFF;
  ConstBytes body;
  if (!in->take(body_size(head, n), &body)) return false;
  chunk->body = body.data();
  return chunk->planes > 0 ? valid_planes(*chunk, n) : valid_list(rule, *chunk, n);
}

// ---- sums -----------------------------------------------------------------------------------

using Counts = std::array<int8_t, kValues>;  // value = count * tau

// Adds a chunk. False: a sum is beyond kMostMagnitude.
static inline bool count_chunk(const Chunk& chunk, size_t n, Counts* counts) {
  bool good = true;
  const auto add = [&](size_t i, uint32_t magnitude, uint32_t negative) {
    const int sum = (*counts)[i] + (negative ? -1 : 1) * static_cast<int>(magnitude);
    good = good && std::abs(sum) <= static_cast<int>(kMostMagnitude);
    (*counts)[i] = static_cast<int8_t>(sum);
  };
  for (size_t i = 0; i < chunk.count; ++i) {
    const uint32_t entry = chunks::read<uint16_t>(chunk.body + 2 * i);
    add(entry_position(entry), entry_magnitude(entry), entry >> 15);
  }
  for (size_t g = 0; chunk.planes > 0 && g < groups_of(n); ++g)
    each_marked(chunk.body + 4 * (chunk.planes + 1) * g, chunk.planes,
                [&](uint32_t i, uint32_t magnitude, uint32_t negative) {
                  add(g * chunks::kGroup + i, magnitude, negative);
                });
  return good;
}

static inline bool write_counts(const Rule& rule, const Counts& counts, size_t n, Bytes* dst) {
  uint32_t most = 1;
  Marks marks = {true, rule.tau, 0};
  for (size_t i = 0; i < n; ++i) {
    most = std::max(most, static_cast<uint32_t>(std::abs(counts[i])));
    marks.count += counts[i] != 0;
  }
  const size_t planes = static_cast<size_t>(std::bit_width(most));
  PlaneBuffer groups;
  for (size_t g = 0; g < groups_of(n); ++g) {
    for (size_t p = 0; p <= planes; ++p) {
      uint32_t word = 0;
      for (size_t i = g * chunks::kGroup; i < std::min(n, (g + 1) * chunks::kGroup); ++i) {
        const uint32_t bit = p == planes ? counts[i] < 0 : std::abs(counts[i]) >> p & 1;
        word |= bit << i % chunks::kGroup;
      }
      chunks::write(groups.data() + 4 * ((planes + 1) * g + p), word);
    }
  }
  return write_chunk(list_marks, rule, groups.data(), planes, most <= kMostListed, marks, n, dst);
}

[[maybe_unused]] static Status add(void*, const Args& args, ConstBytes a, ConstBytes b,
                                   size_t raw_size, Bytes dst, size_t* written) noexcept {
  const Rule rule(args);
  if (rule.mean)
    return fail(Code::kUnsupported, "tbq: codes with of=mean have no common unit to be summed in");
  const size_t n = raw_size / 4, tail = raw_size % 4;
  if (tail != 0)
    return fail(Code::kUnsupported, "tbq: %zu bytes after the last value have no sum", tail);
  const size_t room = dst.size();
  Reader in[2] = {Reader(a), Reader(b)};
  for (size_t begin = 0; begin < n; begin += kValues) {
    const size_t size = std::min(kValues, n - begin);
    Chunk chunk[2];
    for (size_t k = 0; k < 2; ++k)
      if (!read_chunk(rule, &in[k], size, &chunk[k]))
        return fail(Code::kCorrupt, "tbq: chunk %zu of summand %zu is none", begin / kValues, k);
    Counts counts{};
    bool fits;
    if (chunk[0].nan || chunk[1].nan) {
      fits = write_nan(rule, &dst);
    } else {
      if (!count_chunk(chunk[0], size, &counts) || !count_chunk(chunk[1], size, &counts))
        return fail(Code::kUnsupported, "tbq: a sum in chunk %zu is beyond %u tau", begin / kValues,
                    kMostMagnitude);
      fits = write_counts(rule, counts, size, &dst);
    }
    if (!fits) return fail(Code::kDstTooSmall, "tbq: the sum does not fit %zu bytes", room);
  }
  for (const Reader& reader : in)
    if (reader.left() != 0)
      return fail(Code::kCorrupt, "tbq: %zu bytes after the last chunk", reader.left());
  *written = room - dst.size();
  return {};
}

// ---- blocks ---------------------------------------------------------------------------------

// For chunks::Functions. Codes have any size, so that the walk is not that of chunks::Blocks.
template <typename C>
class Blocks {
 public:
  static constexpr const char* kName = "tbq";
  static constexpr decltype(Kernel::add) add_function() { return add; }

  template <bool kFeedback>
  static Status encode_block(const Args& args, ConstBytes src, std::byte* residual, Bytes dst,
                             size_t* written) {
    const Rule rule(args);
    const C kernel(rule);
    const size_t n = src.size() / 4, tail = src.size() % 4;
    const size_t room = dst.size();
    const auto full = [&] {
      return fail(Code::kDstTooSmall, "tbq: the code of %zu bytes does not fit %zu", src.size(),
                  room);
    };
    if (kFeedback && room < bound(args, src.size()))  // before the residual changes
      return fail(Code::kDstTooSmall, "tbq: a code of %zu bytes may need %zu, has %zu", src.size(),
                  bound(args, src.size()), room);
    MarkBuffer groups;
    for (size_t begin = 0; begin < n; begin += kValues) {
      const size_t size = std::min(kValues, n - begin);
      const std::byte* from = src.data() + 4 * begin;
      std::byte* rest = kFeedback ? residual + 4 * begin : nullptr;
      Marks marks;
      if (size == kValues)
        marks = kernel.template mark<kFeedback>(from, rest, run_of(kValues), groups.data());
      else
        chunks::on_copies<kFeedback>(
            from, rest, run_of(size), [&](const std::byte* values, std::byte* error) {
              marks = kernel.template mark<kFeedback>(values, error, run_of(size), groups.data());
            });
      if (!marks.finite) {
        if constexpr (kFeedback) std::memset(rest, 0, 4 * size);
        if (!write_nan(rule, &dst)) return full();
      } else if (!write_chunk(C::list, rule, groups.data(), 1, true, marks, size, &dst)) {
        return full();
      }
    }
    std::byte* last = take_room(&dst, tail);
    if (tail > 0 && last == nullptr) return full();
    if (tail > 0) std::memcpy(last, src.data() + 4 * n, tail);
    *written = room - dst.size();
    return {};
  }

  template <bool kAdd>
  static Status decode_block(const Args& args, ConstBytes src, Bytes dst) {
    const Rule rule(args);
    const size_t n = dst.size() / 4, tail = dst.size() % 4;
    Reader in(src);
    for (size_t begin = 0; begin < n; begin += kValues) {
      const size_t size = std::min(kValues, n - begin);
      Chunk chunk;
      if (!read_chunk(rule, &in, size, &chunk))
        return fail(
            Code::kCorrupt,
            "tbq: chunk %zu, before byte %zu of %zu: cut, or a head, position or bit that no "
            "encoder writes",
            begin / kValues, in.position(), src.size());
      decode_chunk<kAdd>(chunk, size, dst.data() + 4 * begin);
    }
    if (in.left() != tail)
      return fail(Code::kCorrupt, "tbq: %zu bytes after the last chunk, not %zu", in.left(), tail);
    return {};
  }

 private:
  struct alignas(64) MarkBuffer : std::array<std::byte, kMarkSize * groups_of(kValues)> {};

  static chunks::Run run_of(size_t n) { return {n, chunks::padded(n), 0}; }  // nothing is drawn

  template <bool kAdd>
  static void decode_chunk(const Chunk& chunk, size_t n, std::byte* dst) {
    if (chunk.nan) return C::template fill<kAdd>(chunks::float_of(chunks::kNan), n, dst);
    if (chunk.planes == 0) {
      // Added to -0, the +0 of what is not listed makes +0.
      C::template fill<kAdd>(0, n, dst);
      for (size_t i = 0; i < chunk.count; ++i) {
        const uint32_t entry = chunks::read<uint16_t>(chunk.body + 2 * i);
        chunks::put<kAdd>(dst, entry_position(entry), entry_value(entry, chunk.level));
      }
    } else if (n == kValues) {
      C::template expand<kAdd>(chunk.body, chunk.planes, n, chunk.level, dst);
    } else {
      chunks::into_copy<kAdd>(dst, run_of(n), [&](std::byte* to) {
        C::template expand<kAdd>(chunk.body, chunk.planes, chunks::padded(n), chunk.level, to);
        return true;
      });
    }
  }
};

template <typename C>
static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
  return chunks::Functions<Blocks<C>>::kernel(variant, usable);
}

}  // namespace wirepress::tbq
