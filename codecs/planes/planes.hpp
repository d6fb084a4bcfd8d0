// SPDX-License-Identifier: Apache-2.0
// planes block by block and, within a block, chunk by chunk (spec.md). Kernels differ in Ops
// (plain.hpp). Long because both directions share what a chunk is, and are compiled once for each
// kernel.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "codecs/planes/plan.hpp"

namespace wirepress {
namespace {
namespace planes {

// Room that grows and stays.
struct Buffer {
  std::unique_ptr<std::byte[]> bytes;
  size_t size = 0;
  bool reserve(size_t wanted) {
    if (wanted <= size) return true;
    bytes.reset(new (std::nothrow) std::byte[wanted]);
    size = bytes ? wanted : 0;
    return bytes != nullptr;
  }
};

struct State {
  using List = std::array<std::byte, kChunk + kSlack>;
  Buffer lines;     // those that are not zero
  Buffer elements;  // likewise
  Buffer sample;    // and as much again as one plane of it
  Plan plan;
  Plane marks;  // of elements that are not zero
  std::array<List, kMostPlanes> planes;
  List steps;
  std::array<std::byte, TreeEncoder<PlainOps>::kRoom> code;
  std::array<std::byte, kArena> arena;
};

struct Output {
  Bytes dst;
  size_t position = 0;
  bool full = false;
  // Where the next bytes go; nullptr: they do not fit.
  std::byte* claim(size_t size) {
    full |= size > dst.size() - position;
    if (full) return nullptr;
    position += size;
    return dst.data() + position - size;
  }
  void put(ConstBytes bytes) {
    std::byte* const to = claim(bytes.size());
    if (to != nullptr && !bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }
  // Room for `size` bytes, of which commit() takes some; nullptr: there is less.
  std::byte* room(size_t size) const {
    return size > dst.size() - position ? nullptr : dst.data() + position;
  }
  void commit(size_t size) { position += size; }
  void put(size_t byte) {
    const auto b = static_cast<std::byte>(byte);
    put(ConstBytes(&b, 1));
  }
};

// ---- encoding -------------------------------------------------------------------------------

template <typename Ops>
class Encoder {
 public:
  Encoder(State* state, size_t size, Output* out) : own_(*state), size_(size), out_(*out) {}

  // `flags`, and then the rest of the payload.
  bool run(uint8_t flags, ConstBytes lines, ConstBytes body) {
    ConstBytes marks;
    if (!look(flags, body)) return false;
    if (has_zeros_ && !leave_out_zeros(flags, &body, &marks)) return false;
    out_.put(size_t{own_.plan.flags});
    out_.put(lines);
    put_marks(marks);
    if (n_ > 0) put_plan();
    for (size_t i = 0; i < n_ && !out_.full; i += kChunk)
      put_chunk(body.data() + i * size_, std::min(kChunk, n_ - i));
    out_.put(body.last(body.size() - n_ * size_));
    return true;
  }

 private:
  size_t upper() const { return size_ - 1; }
  uint8_t sign_mask() const { return static_cast<uint8_t>(1u << sign_bit(size_)); }

  // Chooses by a sample how the body's planes are stored. False: no memory.
  bool look(uint8_t flags, ConstBytes body) {
    n_ = body.size() / size_;
    Plan& plan = own_.plan;
    plan.flags = flags;
    plan.base = size_ == 8 ? base_of(body, n_) : 0;
    plan.n_planes = size_;
    expected_ = 0;
    has_zeros_ = false;
    if (n_ == 0) return true;
    const SampleLines lines(n_);
    const size_t sampled = lines.n > 0 ? lines.n * kLine : n_;
    const size_t distance = sampled + kSlack;
    if (!own_.sample.reserve((size_ + 1) * distance)) return false;
    std::byte* const sample = own_.sample.bytes.get();
    std::array<std::byte*, kMostPlanes> to;
    std::array<std::byte, kLine / 8> marks;
    size_t n_zeros = sampled;
    for (size_t at = 0; at < sampled; at += kLine) {
      const std::byte* const line = body.data() + at * lines.step * size_;
      const size_t n = std::min(kLine, sampled);
      for (size_t p = 0; p < size_; ++p) to[p] = sample + p * distance + at;
      split<Ops>(line, n, size_, plan.base_in_word(), to.data());
      mark<Ops>(line, n, size_, marks.data());
      n_zeros -= ones(marks.data(), n);
    }
    has_zeros_ = 64 * n_zeros >= sampled;
    std::byte* const room = sample + size_ * distance;
    uint64_t bits = choose_signs<Ops>(sample, sampled, n_, sign_mask(), room, &plan.plane[size_]);
    if (bits > 0) {
      plan.flags |= kSigns;
      plan.n_planes = size_ + 1;
    }
    const std::byte* const upper_sample = sample + upper() * distance;
    const uint64_t upper_bits =
        choose_upper<Ops>(upper_sample, sampled, n_, room, &plan, &plan.plane[upper()]);
    bits += upper_bits;
    for (size_t p = 0; p < size_; ++p)
      if (p != upper() || upper_bits == 0)
        bits += choose<Ops>(sample + p * distance, sampled, n_, &plan.plane[p]);
    expected_ = bits * n_ / (8 * sampled);
    return true;
  }

  // Takes elements that are 0 out of the body, if that makes the rest so much smaller.
  bool leave_out_zeros(uint8_t flags, ConstBytes* body, ConstBytes* left) {
    const size_t all = n_, with_zeros = expected_, size = (all + 7) / 8;
    if (!own_.elements.reserve(size + body->size() + 2 * kSlack)) return false;
    std::byte* const marks = own_.elements.bytes.get();
    mark<Ops>(body->data(), all, size_, marks);
    const size_t kept = ones(marks, all);
    const size_t marks_size = (choose<Ops>(marks, size, size, &own_.marks) + 7) / 8;
    std::byte* const others = marks + size + kSlack;
    keep<Ops>(body->data(), marks, all, size_, others);
    const ConstBytes tail = body->subspan(all * size_);
    if (!tail.empty()) std::memcpy(others + kept * size_, tail.data(), tail.size());
    const ConstBytes rest(others, kept * size_ + tail.size());
    if (!look(flags | kElements, rest)) return false;
    if (marks_size + expected_ + with_zeros / 128 >= with_zeros) return look(flags, *body);
    *body = rest;
    *left = {marks, size};
    return true;
  }
  void put_marks(ConstBytes marks) {
    if (marks.empty()) return;
    put_plane(&own_.marks);
    if (own_.marks.mode == kRaw) return out_.put(marks);
    for (size_t i = 0; i < marks.size() && !out_.full; i += kChunk)
      put_values(own_.marks, marks.data() + i, std::min(kChunk, marks.size() - i));
  }

  void put_plan() {
    Plan& plan = own_.plan;
    if (size_ == 8) {
      out_.put(plan.base & 255);
      out_.put(plan.base >> 8);
    }
    for (size_t p = 0; p < plan.n_planes; ++p) put_plane(&plan.plane[p]);
  }
  // How it is stored, and its table.
  void put_plane(Plane* plane) {
    out_.put(size_t{plane->mode});
    if (plane->mode != kTable) return;
    plane->tree.emplace(plane->lengths);
    put_table(plane->lengths);
  }
  void put_table(const Lengths& lengths) {
    const Range range(lengths);
    std::array<std::byte, 2 + (kSymbols + 1) / 2> table{};
    table[0] = static_cast<std::byte>(range.first);
    table[1] = static_cast<std::byte>(range.last);
    table[2] = static_cast<std::byte>(lengths[kEscape]);
    for (size_t s = range.first, i = 1; s <= range.last; ++s, ++i)
      table[2 + i / 2] |= static_cast<std::byte>(lengths[s] << i % 2 * 4);
    out_.put(ConstBytes(table).first(range.table_size()));
  }

  void put_chunk(const std::byte* src, size_t n) {
    Plan& plan = own_.plan;
    std::array<std::byte*, kMostPlanes> planes;
    for (size_t p = 0; p < size_; ++p) {
      planes[p] = plan.plane[p].mode == kRaw ? out_.claim(n) : own_.planes[p].data();
      if (planes[p] == nullptr) return;
    }
    // The memory of the next chunk's code comes while this one's elements are taken apart.
    const size_t expected = expected_ * n / n_, left = out_.dst.size() - out_.position;
    std::byte* const behind = out_.dst.data() + out_.position;
    ahead_.read(behind, behind + std::min(left, 2 * expected));
    std::array<std::byte*, kMostPlanes> to = planes;
    for (size_t i = 0, part = 0; i < n; i += part) {
      part = std::min(kJoined, n - i);
      ahead_.fetch(0, expected * part / n + kLine);
      split<Ops>(src + i * size_, part, size_, plan.base_in_word(), to.data());
      for (size_t p = 0; p < size_; ++p) to[p] += part;
    }
    if (plan.flags & kSigns) {
      planes[size_] = own_.planes[size_].data();
      Ops::take_bits(planes[0], n, sign_mask(), planes[size_]);
      chain_signs(planes[size_], n);
      for (size_t i = 0; i < n; ++i) planes[0][i] &= static_cast<std::byte>(~sign_mask());
    }
    if (plan.flags & kDifferences) {
      Ops::differences(planes[upper()], n, own_.steps.data());
      planes[upper()] = own_.steps.data();
    }
    for (size_t p = 0; p < plan.n_planes; ++p)
      if (plan.plane[p].mode != kRaw)
        put_values(plan.plane[p], planes[p], p == size_ ? (n + 7) / 8 : n);
  }

  // A chunk of a plane in the smallest of its forms.
  void put_values(const Plane& plane, const std::byte* values, size_t n) {
    uint8_t any = 0, all = 0xFF;
    size_t seen = 0;
    const auto more = [&] {  // false: all values were looked at
      if (seen == n) return false;
      const size_t part = std::min(kLook, n - seen);
      const auto [some, each] = Ops::common(values + seen, part);
      any |= some, all &= each, seen += part;
      return true;
    };
    const auto size_as_bits = [&] {
      return 1 + static_cast<size_t>(std::popcount(any)) * ((n + 7) / 8);
    };
    while ((any == all || any == 0) && more()) {
    }
    if (any == all) {
      out_.put(size_t{kConstant});
      return out_.put(size_t{any});
    }
    // Where there is room for any code it is made in its place, behind its kind.
    std::byte* const there = out_.room(own_.code.size() + 2);
    std::byte* const code = there != nullptr ? there + 1 : own_.code.data();
    size_t least = n;
    if (plane.mode == kTable) {
      const size_t coded = TreeEncoder<Ops>(*plane.tree, own_.arena.data())(values, n, code);
      least = std::min(coded, n);
    }
    // No further than until it is certain that bits are not smaller.
    while (size_as_bits() <= least && more()) {
    }
    const size_t bits = size_as_bits();
    if (least < bits && least < n) {
      out_.put(size_t{kCoded});
      return there != nullptr ? out_.commit(least) : out_.put(ConstBytes(code, least));
    }
    if (bits >= n) {
      out_.put(size_t{kStored});
      return out_.put(ConstBytes(values, n));
    }
    out_.put(size_t{kBits});
    out_.put(size_t{any});
    std::byte* const to = there != nullptr ? there + 2 : own_.code.data();
    Ops::take_bits(values, n, any, to);
    return there != nullptr ? out_.commit(bits - 1) : out_.put(ConstBytes(to, bits - 1));
  }

  State& own_;
  size_t size_;
  Output& out_;
  size_t n_ = 0;
  size_t expected_ = 0;     // bytes that the elements will take
  bool has_zeros_ = false;  // so many that it may pay to leave them out
  Ahead ahead_;
};

// ---- decoding -------------------------------------------------------------------------------

template <typename Ops>
class Decoder {
 public:
  // past_caches: what is decoded is written past the caches, if it is to be.
  Decoder(State* state, size_t size, uint8_t flags, bool past_caches)
      : own_(*state), size_(size), flags_(flags), past_caches_(past_caches) {}

  // The payload behind the lines; nullptr, or what is wrong with it. With kElements there is room
  // for all of the body's in the state.
  const char* run(ConstBytes src, Bytes body) {
    src_ = src;
    const size_t all = body.size() / size_;
    size_t n = all;
    const std::byte* marks = nullptr;
    std::byte* elements = body.data();
    if ((flags_ & kElements) != 0) {
      std::byte* const room = own_.elements.bytes.get();
      elements = room + (all + 7) / 8 + kSlack;
      marks = take_marks((all + 7) / 8, room);
      if (marks == nullptr || (all % 8 != 0 && (marks[all / 8] >> all % 8) != std::byte{0}))
        return "which elements are 0";
      n = ones(marks, all);
    }
    if (n == 0 && (flags_ & (kSigns | kDifferences)) != 0) return "flags for no elements";
    if (n > 0 && !take_plan()) return "how planes are stored";
    bool whole = true;
    for (size_t i = 0; i < n && whole; i += kChunk) {
      const size_t part = std::min(kChunk, n - i);
      whole = take_chunk(part, n - i - part, elements + i * size_);
    }
    if (past_caches_) Ops::settle();
    if (!whole) return "a chunk";
    if (marks != nullptr) spread<Ops>(elements, marks, all, size_, body.data());
    const size_t tail = body.size() - all * size_;
    if (src_.size() != tail) return "the size";
    if (tail > 0) std::memcpy(body.data() + all * size_, src_.data(), tail);
    return nullptr;
  }

 private:
  // The next bytes; nullptr: there are fewer.
  const std::byte* take(size_t size) {
    if (size > src_.size()) return nullptr;
    const std::byte* const bytes = src_.data();
    src_ = src_.subspan(size);
    return bytes;
  }

  // The next n bytes that say which elements are not 0, if need be in `room`; nullptr: none are.
  const std::byte* take_marks(size_t n, std::byte* room) {
    if (!take_plane(&own_.marks)) return nullptr;
    if (own_.marks.mode == kRaw) return take(n);
    for (size_t i = 0; i < n; i += kChunk)
      if (!take_values(own_.marks, std::min(kChunk, n - i), room + i)) return nullptr;
    return room;
  }

  bool take_plan() {
    Plan& plan = own_.plan;
    plan.base = 0;
    if (size_ == 8) {
      const std::byte* const base = take(2);
      if (base == nullptr) return false;
      plan.base = static_cast<unsigned>(base[0]) | static_cast<unsigned>(base[1]) << 8;
      if (plan.base > 2046) return false;
    }
    plan.n_planes = size_ + ((flags_ & kSigns) != 0 ? 1 : 0);
    for (size_t p = 0; p < plan.n_planes; ++p)
      if (!take_plane(&plan.plane[p])) return false;
    // Signs and differences are put back into planes that are in a buffer of ours.
    if ((flags_ & kSigns) != 0 && plan.plane[0].mode == kRaw) return false;
    return (flags_ & kDifferences) == 0 || plan.plane[size_ - 1].mode != kRaw;
  }

  bool take_plane(Plane* plane) {
    const std::byte* const mode = take(1);
    if (mode == nullptr || *mode > std::byte{kTable}) return false;
    plane->mode = static_cast<Mode>(*mode);
    return plane->mode != kTable || take_table(plane);
  }
  bool take_table(Plane* plane) {
    const std::byte* const ends = take(2);
    if (ends == nullptr || ends[0] > ends[1]) return false;
    const auto first = static_cast<size_t>(ends[0]), last = static_cast<size_t>(ends[1]);
    const size_t n_lengths = last - first + 2;  // and the escape's, which comes first
    const std::byte* const table = take((n_lengths + 1) / 2);
    if (table == nullptr) return false;
    Lengths& lengths = plane->lengths;
    lengths = {};
    size_t sum = 0, n_leaves = 0;
    for (size_t i = 0; i < (n_lengths + 1) / 2 * 2; ++i) {
      const auto length = static_cast<uint8_t>(table[i / 2] >> i % 2 * 4 & std::byte{15});
      if (length > kMostLength || (i >= n_lengths && length != 0)) return false;
      if (length == 0) continue;
      lengths[i == 0 ? kEscape : first + i - 1] = length;
      sum += kUnits >> length;
      ++n_leaves;
    }
    if (sum != kUnits || n_leaves > kMostLeaves) return false;
    if (lengths[kEscape] == 0 || lengths[first] == 0 || lengths[last] == 0) return false;
    plane->tree.emplace(lengths);
    return true;
  }

  // n elements, behind which `behind` more will come.
  bool take_chunk(size_t n, size_t behind, std::byte* dst) {
    const Plan& plan = own_.plan;
    std::array<const std::byte*, kMostPlanes> planes;
    const std::byte* const raw = src_.data();
    for (size_t p = 0; p < plan.n_planes; ++p) {
      const bool is_raw = plan.plane[p].mode == kRaw;
      planes[p] = is_raw ? take(values_of(p, n)) : own_.planes[p].data();
      if (planes[p] == nullptr) return false;
    }
    ahead_.read(raw, src_.data());
    if (!past_caches_) ahead_.write(dst, dst + n * size_);
    for (size_t p = 0; p < plan.n_planes; ++p)
      if (plan.plane[p].mode != kRaw &&
          !take_values(plan.plane[p], values_of(p, n), own_.planes[p].data()))
        return false;
    if ((flags_ & kDifferences) != 0) Ops::sums(own_.planes[size_ - 1].data(), n);
    if ((flags_ & kSigns) != 0) {
      std::byte* const signs = own_.planes[size_].data();
      if (planes[size_] != signs) std::memcpy(signs, planes[size_], values_of(size_, n));
      if (n % 8 != 0 && (signs[n / 8] >> n % 8) != std::byte{0}) return false;
      unchain_signs(signs, n);
      const auto mask = static_cast<uint8_t>(1u << sign_bit(size_));
      Ops::template put_bits<true>(signs, n, mask, own_.planes[0].data());
    }
    // The next chunk's memory comes while this one's words are put together. It is as large.
    const auto size = static_cast<size_t>(src_.data() - raw);
    ahead_.read(src_.data(), src_.data() + std::min(src_.size(), size));
    if (!past_caches_) ahead_.write(dst + n * size_, dst + (n + std::min(kChunk, behind)) * size_);
    // What is written past the caches begins a line.
    size_t part = past_caches_ ? std::min(n, to_line(dst) / size_) : 0;
    for (size_t i = 0; i < n; i += part) {
      if (i > 0 || part == 0) part = std::min(kJoined, n - i);
      const bool past = past_caches_ && to_line(dst + i * size_) == 0;
      ahead_.fetch(part * size_ / 2, part * size_ / 2);
      join<Ops>(planes.data(), part, size_, plan.base_in_word(), past, dst + i * size_);
      for (size_t p = 0; p < size_; ++p) planes[p] += part;
    }
    return true;
  }
  static size_t to_line(const std::byte* at) {
    return (kLine - reinterpret_cast<uintptr_t>(at) % kLine) % kLine;
  }
  size_t values_of(size_t p, size_t n) const { return p == size_ ? (n + 7) / 8 : n; }

  bool take_values(const Plane& plane, size_t n, std::byte* values) {
    const std::byte* const kind = take(1);
    if (kind == nullptr) return false;
    switch (static_cast<Kind>(*kind)) {
      case kStored: {
        const std::byte* const stored = take(n);
        return stored != nullptr && (std::memcpy(values, stored, n), true);
      }
      case kConstant: {
        const std::byte* const value = take(1);
        return value != nullptr && (std::memset(values, static_cast<int>(*value), n), true);
      }
      case kBits:
        return take_bits(n, values);
      case kCoded:
        return plane.mode == kTable &&
               TreeDecoder<Ops>(*plane.tree, own_.arena.data(), &ahead_)(&src_, n, values);
    }
    return false;
  }
  bool take_bits(size_t n, std::byte* values) {
    const std::byte* const mask = take(1);
    if (mask == nullptr || *mask == std::byte{0}) return false;
    const auto width = static_cast<size_t>(std::popcount(static_cast<uint8_t>(*mask)));
    const size_t size = width * ((n + 7) / 8);
    const std::byte* const bits = take(size);
    if (bits == nullptr) return false;
    for (size_t i = size - width; n % 8 != 0 && i < size; ++i)
      if ((bits[i] >> n % 8) != std::byte{0}) return false;
    Ops::template put_bits<false>(bits, n, static_cast<uint8_t>(*mask), values);
    return true;
  }

  State& own_;
  size_t size_;
  uint8_t flags_;
  bool past_caches_;
  Ahead ahead_;
  ConstBytes src_;
};

// ---- the kernel's door ----------------------------------------------------------------------

inline Status no_memory() { return fail(Code::kNoMemory, "planes: no memory for its buffers"); }
inline Status corrupt(const char* what, size_t a, size_t b) {
  return fail(Code::kCorrupt, "planes: %s: %zu, of %zu", what, a, b);
}
inline size_t element(const Args& args) {
  return args.dtype == DType::kBytes ? 4 : dtype_size(args.dtype);
}

inline Status open(const Args&, void** state) noexcept {
  *state = new (std::nothrow) State;
  return *state == nullptr ? no_memory() : Status();
}
inline void close(void* state) noexcept { delete static_cast<State*>(state); }

template <typename Ops>
Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  *written = 0;
  if (src.empty()) return {};
  auto* own = static_cast<State*>(state);
  const size_t n_lines = (src.size() + kLine - 1) / kLine;
  const size_t bitmap_size = (n_lines + 7) / 8;
  if (!own->lines.reserve(src.size() + bitmap_size)) return no_memory();
  std::byte* const bitmap = own->lines.bytes.get();
  const bool some = find_lines<Ops>(src, n_lines, bitmap) > bitmap_size;
  const ConstBytes lines(bitmap, some ? bitmap_size : 0);
  const ConstBytes body = some ? keep_lines(src, n_lines, bitmap, bitmap + bitmap_size) : src;
  Output out{dst};
  if (!Encoder<Ops>(own, element(args), &out).run(some ? kLines : 0, lines, body))
    return no_memory();
  if (out.full)
    return fail(Code::kDstTooSmall, "planes: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  *written = out.position;
  return {};
}

template <typename Ops>
Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  auto* own = static_cast<State*>(state);
  *written = dst.size();
  if (dst.empty()) return src.empty() ? Status() : corrupt("bytes for none", src.size(), 0);
  if (src.empty() || src[0] > std::byte{kFlags}) return corrupt("flags, or none", 0, src.size());
  const auto flags = static_cast<uint8_t>(src[0]);
  if ((flags & kElements) != 0 && !own->elements.reserve(dst.size() + dst.size() / 8 + 3 * kSlack))
    return no_memory();
  const bool direct = (flags & (kLines | kElements)) == 0;
  Decoder<Ops> decoder(own, element(args), flags, args.past_caches && direct);
  if ((flags & kLines) == 0) {
    const char* const wrong = decoder.run(src.subspan(1), dst);
    return wrong == nullptr ? Status() : corrupt(wrong, src.size(), dst.size());
  }
  const size_t n_lines = (dst.size() + kLine - 1) / kLine;
  const size_t bitmap_size = (n_lines + 7) / 8;
  if (src.size() < 1 + bitmap_size) return corrupt("bitmap ends", src.size(), 1 + bitmap_size);
  const std::byte* const bitmap = src.data() + 1;
  if (n_lines % 8 != 0 && (bitmap[bitmap_size - 1] >> n_lines % 8) != std::byte{0})
    return corrupt("bits behind the last line", n_lines, n_lines);
  size_t kept = 0;
  for (const std::byte b : src.subspan(1, bitmap_size))
    kept += static_cast<size_t>(std::popcount(static_cast<uint8_t>(b)));
  size_t body_size = kept * kLine;
  if (bit(bitmap, n_lines - 1)) body_size -= kLine - line_size(n_lines - 1, dst.size());
  if (dst.size() - body_size <= bitmap_size)
    return corrupt("a bitmap for few zero lines", n_lines - kept, n_lines);
  if (!own->lines.reserve(body_size + 1)) return no_memory();
  const Bytes body(own->lines.bytes.get(), body_size);
  const char* const wrong = decoder.run(src.subspan(1 + bitmap_size), body);
  if (wrong != nullptr) return corrupt(wrong, src.size(), dst.size());
  spread_lines(body.data(), bitmap, n_lines, dst);
  return {};
}

template <typename Ops>
constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
  return {.engine = "cpu",
          .variant = variant,
          .usable = usable,
          .open = open,
          .close = close,
          .encode = encode<Ops>,
          .decode = decode<Ops>};
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
