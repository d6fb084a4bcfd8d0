// SPDX-License-Identifier: Apache-2.0
// sparse in groups of 65,536 elements (spec.md). Kernels differ in Ops, which works on chunks of 64
// elements and their masks. In an unnamed namespace, because each kernel compiles it for its
// instruction set. Long because both ways and sums walk over one structure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/order.hpp"
#include "codecs/common/sets.hpp"

namespace wirepress {
namespace {

// Memory of a state; pages that are not needed are never touched.
struct Room {
  // Level 0 are the elements that are not 0, level j the ones whose magnitude is 2^j or more.
  alignas(64) std::array<Bitmap, kMostLevels> members;  // which of level j - 1 are in level j
  alignas(64) std::array<Bitmap, kMostLevels> planes;   // 0: signs; j: bit j - 1 of level j
  // Elements of a level, two because they are taken from one and put into the other, and a sum. A
  // chunk and a register may be written behind their end.
  static constexpr size_t kElements = sizeof(uint32_t) * (kGroup + 2 * kChunk);
  alignas(64) std::array<std::byte, kElements> values[2];
  alignas(64) std::array<std::byte, kElements> sum;
  std::array<uint32_t, kGroup / 4 + kMorePlaces> places;
  std::array<std::byte, (2 * kGroup / 8 + 16) * kMostLevels> code;
};

inline std::byte* put_set(Room* room, const uint64_t* members, size_t n, size_t k, std::byte* out) {
  if (k == n) return out;
  if (is_thin(n, k)) {
    list_places(members, n, room->places.data());
    return put_thin(room->places.data(), n, k, out);
  }
  std::memcpy(out, members, bytes_of(n));
  return out + bytes_of(n);
}

// Ops has, for chunks of 64 elements of T, which is uint8_t, uint16_t or uint32_t,
//   uint64_t test(const std::byte* v, T bits)     bit i: v[i] has any of `bits`
//   void keep(mask, v, T* out)                    the elements of the mask; writes to out + 64
//   void spread(mask, const T* from, T base, std::byte* out)  `from` in turn, `base` elsewhere
//   void set(mask, T bit, T* v)                   v[i] |= bit
//   void negate(mask, T* v)
//   uint64_t differ(before, after)                bit i: the words differ
//   void keep_steps(mask, before, after, T* out)  as keep, of the steps between words
//   void move(mask, const T* from, std::byte* words)
// `spread` and `move` may read until from + 64.
template <typename Ops>
class Sparse {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode,
            .add = add,
            .encode_steps = encode_steps,
            .decode_steps = decode_steps};
  }

 private:
  static Status open(const Args&, void** state) noexcept {
    *state = new (std::nothrow) Room;
    return *state ? Status() : fail(Code::kNoMemory, "no memory for the state of sparse");
  }
  static void close(void* state) noexcept { delete static_cast<Room*>(state); }

  // Calls function(T{}) with the unsigned type that has the size of an element.
  template <typename Function>
  static Status by_type(const Args& args, Function function) {
    switch (dtype_size(args.dtype)) {
      case 1:
        return function(uint8_t{});
      case 2:
        return function(uint16_t{});
      default:
        return function(uint32_t{});
    }
  }

  // ---- encoding

  // Where the elements of a group come from. A chunk has n <= kChunk of them from i on.

  template <typename T>
  struct Plain {  // elements that lie in memory
    const std::byte* src;

    uint64_t mask(size_t i, size_t n) const {
      constexpr T kAll = static_cast<T>(~T{0});
      if (n == kChunk) return Ops::template test<T>(src + i * sizeof(T), kAll);
      return Ops::template test<T>(Sparse::template padded<T>(src, i, n).data(), kAll);
    }
    T at(size_t i) const { return load_word<T>(src, i); }
    void keep(uint64_t mask, size_t i, size_t n, T* out) const {
      if (n == kChunk) return Ops::template keep<T>(mask, src + i * sizeof(T), out);
      Ops::template keep<T>(mask, Sparse::template padded<T>(src, i, n).data(), out);
    }
    void copy(size_t i, size_t n, std::byte* to) const {
      std::memcpy(to, src + i * sizeof(T), n * sizeof(T));
    }
  };

  template <typename T>
  struct Steps {  // between words that lie in memory
    const std::byte *before, *after;

    uint64_t mask(size_t i, size_t n) const {
      if (n == kChunk)
        return Ops::template differ<T>(before + i * sizeof(T), after + i * sizeof(T));
      return Ops::template differ<T>(Sparse::template padded<T>(before, i, n).data(),
                                     Sparse::template padded<T>(after, i, n).data());
    }
    T at(size_t i) const {
      return static_cast<T>(order(load_word<T>(after, i)) - order(load_word<T>(before, i)));
    }
    void keep(uint64_t mask, size_t i, size_t n, T* out) const {
      if (n == kChunk)
        return Ops::template keep_steps<T>(mask, before + i * sizeof(T), after + i * sizeof(T),
                                           out);
      Ops::template keep_steps<T>(mask, Sparse::template padded<T>(before, i, n).data(),
                                  Sparse::template padded<T>(after, i, n).data(), out);
    }
    void copy(size_t i, size_t n, std::byte* to) const {
      find_steps<T>(before + i * sizeof(T), after + i * sizeof(T), n * sizeof(T), to);
    }
  };

  template <typename T>
  static std::array<std::byte, kChunk * sizeof(T)> padded(const std::byte* src, size_t i,
                                                          size_t n) {
    std::array<std::byte, kChunk * sizeof(T)> chunk{};
    std::memcpy(chunk.data(), src + i * sizeof(T), n * sizeof(T));
    return chunk;
  }

  static std::byte* put_count(size_t count, std::byte* out) {
    Writer writer(Bytes(out, 3));
    writer.write_varint(count);
    return out + writer.position();
  }

  template <typename T>
  static const std::byte* bytes(const T* values) {
    return reinterpret_cast<const std::byte*>(values);
  }

  static std::byte* put_bits(const uint64_t* bits, size_t n, std::byte* out) {
    std::memcpy(out, bits, bytes_of(n));
    return out + bytes_of(n);
  }

  // The levels of n values, which are destroyed.
  template <typename T>
  static std::byte* put_levels(Room* room, T* v, size_t n, std::byte* out) {
    constexpr unsigned kBits = 8 * sizeof(T);
    uint64_t *const members = room->members[1].data(), *const plane = room->planes[0].data();
    for (size_t c = 0; c < chunks_of(n); ++c) {
      plane[c] = Ops::template test<T>(bytes(v + kChunk * c), T{1} << (kBits - 1));
      Ops::template negate<T>(plane[c], v + kChunk * c);
    }
    out = put_bits(plane, n, out);
    for (unsigned level = 1; level < kBits; ++level) {
      size_t kept = 0;
      for (size_t c = 0; c < chunks_of(n); ++c) {
        const std::byte* const chunk = bytes(v + kChunk * c);
        members[c] = Ops::template test<T>(chunk, static_cast<T>(~T{0} << level));
        if (members[c] == 0) continue;
        Ops::template keep<T>(members[c], chunk, v + kept);
        kept += static_cast<size_t>(std::popcount(members[c]));
      }
      out = put_count(kept, out);
      if (kept == 0) return out;
      std::fill_n(v + kept, kChunk, T{0});
      out = put_set(room, members, n, kept, out);
      n = kept;
      for (size_t c = 0; c < chunks_of(n); ++c)
        plane[c] = Ops::template test<T>(bytes(v + kChunk * c), T{1} << (level - 1));
      out = put_bits(plane, n, out);
    }
    return out;
  }

  // A group of n elements: its code, in room->code.
  template <typename T, typename Source>
  static size_t code_group(Room* room, const Source& source, size_t first, size_t n) {
    T* const values = reinterpret_cast<T*>(room->values[0].data());
    uint64_t* const members = room->members[0].data();
    // The scan alone first: it has no branches, and what it read is near then.
    size_t count = 0;
    for (size_t c = 0; c < chunks_of(n); ++c) {
      members[c] = source.mask(first + kChunk * c, std::min(kChunk, n - kChunk * c));
      count += static_cast<size_t>(std::popcount(members[c]));
    }
    std::byte* out = put_count(count, room->code.data());
    if (count == 0) return static_cast<size_t>(out - room->code.data());
    if (is_thin(n, count)) {
      list_places(members, n, room->places.data());
      for (size_t i = 0; i < count; ++i) values[i] = source.at(first + room->places[i]);
      out = put_thin(room->places.data(), n, count, out);
    } else {
      T* to = values;
      for (size_t c = 0; c < chunks_of(n); ++c) {
        source.keep(members[c], first + kChunk * c, std::min(kChunk, n - kChunk * c), to);
        to += std::popcount(members[c]);
      }
      out = put_set(room, members, n, count, out);
    }
    std::fill_n(values + count, kChunk, T{0});
    out = put_levels(room, values, count, out);
    return static_cast<size_t>(out - room->code.data());
  }

  template <typename T, typename Source>
  static Status encode_from(Room* room, const Source& source, size_t n, ConstBytes tail, Bytes dst,
                            size_t* written) {
    size_t at = 0;
    const auto full = [&] {
      return fail(Code::kDstTooSmall, "sparse: the code of %zu bytes does not fit %zu",
                  n * sizeof(T) + tail.size(), dst.size());
    };
    for (size_t first = 0; first < n; first += kGroup) {
      const size_t n_group = std::min(kGroup, n - first), raw_size = n_group * sizeof(T);
      const size_t size = code_group<T>(room, source, first, n_group);
      std::byte head[3];
      const size_t head_size = static_cast<size_t>(put_count(n_group + 1, head) - head);
      const bool raw = size >= head_size + raw_size;
      if ((raw ? head_size + raw_size : size) > dst.size() - at) return full();
      std::byte* const out = dst.data() + at;
      std::memcpy(out, raw ? head : room->code.data(), raw ? head_size : size);
      if (raw) source.copy(first, n_group, out + head_size);
      at += raw ? head_size + raw_size : size;
    }
    if (tail.size() > dst.size() - at) return full();
    if (!tail.empty()) std::memcpy(dst.data() + at, tail.data(), tail.size());
    *written = at + tail.size();
    return {};
  }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return by_type(args, [&](auto type) {
      using T = decltype(type);
      const size_t n = src.size() / sizeof(T);
      return encode_from<T>(static_cast<Room*>(state), Plain<T>{src.data()}, n,
                            src.subspan(n * sizeof(T)), dst, written);
    });
  }

  // Bytes at the end that are no whole word are those of `after`.
  static Status encode_steps(void* state, const Args& args, ConstBytes before, ConstBytes after,
                             Bytes dst, size_t* written) noexcept {
    return by_type(args, [&](auto type) {
      using T = decltype(type);
      const size_t n = after.size() / sizeof(T);
      return encode_from<T>(static_cast<Room*>(state), Steps<T>{before.data(), after.data()}, n,
                            after.subspan(n * sizeof(T)), dst, written);
    });
  }

  // ---- decoding

  template <typename T>
  struct Group {
    const std::byte* raw = nullptr;  // its elements, if they are stored as they are
    size_t count = 0;                // elements that are not 0; which: room->members[0]
    const T* values = nullptr;
  };

  // Magnitudes of level `level` and the ones above it, of which there are `count[level]`.
  template <typename T>
  static T* join_levels(Room* room, const size_t* count, unsigned top) {
    T* from = reinterpret_cast<T*>(room->values[0].data());
    T* to = reinterpret_cast<T*>(room->values[1].data());
    std::fill_n(from, kChunk * chunks_of(count[top]), static_cast<T>(T{1} << top));
    for (unsigned level = top;; --level) {
      for (size_t c = 0; level > 0 && c < chunks_of(count[level]); ++c)
        Ops::template set<T>(room->planes[level][c], static_cast<T>(T{1} << (level - 1)),
                             from + kChunk * c);
      if (level == 0) return from;
      const T* next = from;
      for (size_t c = 0; c < chunks_of(count[level - 1]); ++c) {
        const uint64_t mask = room->members[level][c];
        Ops::template spread<T>(mask, next, static_cast<T>(T{1} << (level - 1)),
                                reinterpret_cast<std::byte*>(to + kChunk * c));
        next += std::popcount(mask);
      }
      std::swap(from, to);
    }
  }

  // A magnitude of 2^(bits - 1) is the largest and has a sign.
  template <typename T>
  static bool fits(const Room& room, const T* v, size_t n) {
    constexpr T kMost = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
    for (size_t i = 0; i < n; ++i)
      if (v[i] > kMost || (v[i] == kMost && !(room.planes[0][i / kChunk] >> i % kChunk & 1)))
        return false;
    return true;
  }

  // False: corrupt. 0 < n <= kGroup.
  template <typename T>
  static bool get_group(Room* room, Reader* in, size_t n, Group<T>* group) {
    constexpr unsigned kBits = 8 * sizeof(T);
    uint64_t number;
    if (read_varint(*in, &number) != Varint::kOk || number > n + 1) return false;
    if (number == n + 1) {
      ConstBytes raw;
      if (!in->take(n * sizeof(T), &raw)) return false;
      group->raw = raw.data();
      return true;
    }
    group->count = number;
    if (number == 0) return true;
    size_t count[kBits] = {number};
    if (!get_set(in, n, number, room->members[0].data()) ||
        !get_bitmap(in, number, room->planes[0].data()))
      return false;
    unsigned top = 0;
    while (top + 1 < kBits) {
      if (read_varint(*in, &number) != Varint::kOk || number > count[top]) return false;
      if (number == 0) break;
      ++top;
      count[top] = number;
      if (!get_set(in, count[top - 1], number, room->members[top].data()) ||
          !get_bitmap(in, number, room->planes[top].data()))
        return false;
    }
    T* const values = join_levels<T>(room, count, top);
    if (top + 1 == kBits && !fits(*room, values, count[0])) return false;
    for (size_t c = 0; c < chunks_of(count[0]); ++c)
      Ops::template negate<T>(room->planes[0][c], values + kChunk * c);
    group->values = values;
    return true;
  }

  // Calls chunk(first, n, mask, values) for chunks of a group that is not stored raw.
  template <typename T, typename Function>
  static void for_chunks(const Room& room, const Group<T>& group, size_t n, Function function) {
    const T* values = group.values;
    for (size_t c = 0; c < chunks_of(n); ++c) {
      const uint64_t mask = group.count == 0 ? 0 : room.members[0][c];
      function(kChunk * c, std::min(kChunk, n - kChunk * c), mask, values);
      values += std::popcount(mask);
    }
  }

  // For every group of the code: use(group, first element, elements). Bytes behind the last whole
  // element go to `tail`.
  template <typename T, typename Function>
  static Status for_groups(Room* room, ConstBytes src, size_t raw_size, Bytes tail, Function use) {
    Reader in(src);
    const size_t n = raw_size / sizeof(T);
    for (size_t first = 0; first < n; first += kGroup) {
      const size_t n_group = std::min(kGroup, n - first);
      Group<T> group;
      if (!get_group(room, &in, n_group, &group))
        return fail(Code::kCorrupt,
                    "sparse: elements %zu to %zu contradict themselves before byte %zu", first,
                    first + n_group, in.position());
      WPR_TRY(use(group, first, n_group));
    }
    if (in.left() != tail.size())
      return fail(Code::kCorrupt, "sparse: %zu bytes behind the last element, not %zu", in.left(),
                  tail.size());
    if (!tail.empty()) std::memcpy(tail.data(), src.data() + in.position(), tail.size());
    return {};
  }

  template <typename T>
  static void expand_group(const Room& room, const Group<T>& group, size_t n, std::byte* out) {
    if (group.raw) {
      std::memcpy(out, group.raw, n * sizeof(T));
      return;
    }
    for_chunks(room, group, n, [&](size_t i, size_t size, uint64_t mask, const T* values) {
      std::byte* const to = out + i * sizeof(T);
      if (mask == 0) {
        std::memset(to, 0, size * sizeof(T));
      } else if (size == kChunk) {
        Ops::template spread<T>(mask, values, T{0}, to);
      } else {
        alignas(64) T chunk[kChunk];
        Ops::template spread<T>(mask, values, T{0}, reinterpret_cast<std::byte*>(chunk));
        std::memcpy(to, chunk, size * sizeof(T));
      }
    });
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    Room* const room = static_cast<Room*>(state);
    *written = dst.size();
    return by_type(args, [&](auto type) {
      using T = decltype(type);
      return for_groups<T>(room, src, dst.size(), dst.last(dst.size() % sizeof(T)),
                           [&](const Group<T>& group, size_t first, size_t n) {
                             expand_group(*room, group, n, dst.data() + first * sizeof(T));
                             return Status();
                           });
    });
  }

  static Status decode_steps(void* state, const Args& args, ConstBytes src, Bytes dst) noexcept {
    Room* const room = static_cast<Room*>(state);
    return by_type(args, [&](auto type) {
      using T = decltype(type);
      return for_groups<T>(room, src, dst.size(), dst.last(dst.size() % sizeof(T)),
                           [&](const Group<T>& group, size_t first, size_t n) {
                             move_group(*room, group, n, dst.data() + first * sizeof(T));
                             return Status();
                           });
    });
  }

  template <typename T>
  static void move_group(const Room& room, const Group<T>& group, size_t n, std::byte* words) {
    if (group.raw) return take_steps<T>(group.raw, n * sizeof(T), words);
    for_chunks(room, group, n, [&](size_t i, size_t size, uint64_t mask, const T* values) {
      if (mask == 0) return;
      std::byte* const to = words + i * sizeof(T);
      if (size == kChunk) return Ops::template move<T>(mask, values, to);
      alignas(64) T chunk[kChunk] = {};
      std::memcpy(chunk, to, size * sizeof(T));
      Ops::template move<T>(mask, values, reinterpret_cast<std::byte*>(chunk));
      std::memcpy(to, chunk, size * sizeof(T));
    });
  }

  // Sums are made group by group; the bytes behind the last element are those of b.
  static Status add(void* state, const Args& args, ConstBytes a, ConstBytes b, size_t raw_size,
                    Bytes dst, size_t* written) noexcept {
    Room* const room = static_cast<Room*>(state);
    return by_type(args, [&](auto type) {
      using T = decltype(type);
      return add_as<T>(room, a, b, raw_size, dst, written);
    });
  }

  template <typename T>
  static Status add_as(Room* room, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
                       size_t* written) {
    if (raw_size % sizeof(T) != 0)
      return fail(Code::kUnsupported,
                  "sparse: blocks of %zu bytes, not whole elements, have no sum", raw_size);
    Reader left(a);
    T* const sum = reinterpret_cast<T*>(room->sum.data());
    size_t at = 0;
    const auto add_group = [&](const Group<T>& group, size_t first, size_t n) -> Status {
      // Until here the room holds b's group.
      add_to(*room, group, n, sum, false);
      Group<T> other;
      if (!get_group(room, &left, n, &other))
        return fail(Code::kCorrupt, "sparse: elements %zu to %zu of a sum contradict themselves",
                    first, first + n);
      add_to(*room, other, n, sum, true);
      size_t size = 0;
      WPR_TRY(encode_from<T>(room, Plain<T>{room->sum.data()}, n, {}, dst.subspan(at), &size));
      at += size;
      return {};
    };
    WPR_TRY(for_groups<T>(room, b, raw_size, {}, add_group));
    if (left.left() != 0)
      return fail(Code::kCorrupt, "sparse: %zu bytes behind the last element", left.left());
    *written = at;
    return {};
  }

  template <typename T>
  static void add_to(const Room& room, const Group<T>& group, size_t n, T* sum, bool more) {
    if (!more) return expand_group(room, group, n, reinterpret_cast<std::byte*>(sum));
    if (group.raw) {
      for (size_t i = 0; i < n; ++i) sum[i] = static_cast<T>(sum[i] + load_word<T>(group.raw, i));
      return;
    }
    for_chunks(room, group, n, [&](size_t i, size_t, uint64_t mask, const T* values) {
      if (mask == 0) return;
      alignas(64) T chunk[kChunk];
      Ops::template spread<T>(mask, values, T{0}, reinterpret_cast<std::byte*>(chunk));
      for (size_t j = 0; j < kChunk; ++j) sum[i + j] = static_cast<T>(sum[i + j] + chunk[j]);
    });
  }
};

}  // namespace
}  // namespace wirepress
