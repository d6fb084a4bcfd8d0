// SPDX-License-Identifier: Apache-2.0
// trits a group at a time (spec.md): work follows the places that are set, of which there are few.
// Kernels differ in Ops, which has
//   uint64_t extract(uint64_t bits, uint64_t mask)   the bits of the mask, next to each other
//   uint64_t deposit(uint64_t bits, uint64_t mask)   the other way
// In an unnamed namespace, because each kernel compiles it for its instruction set.
#pragma once

#include <array>

#include "base/kernel.hpp"
#include "codecs/common/sets.hpp"
#include "codecs/trits/units.hpp"

namespace wirepress {
namespace {

template <typename Ops>
class Trits {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = nullptr,
            .close = nullptr,
            .encode = encode,
            .decode = decode};
  }

 private:
  static constexpr size_t kMostPlaces = trits::kPairs * trits::kPlaces;
  static constexpr size_t kMostWords = kMostPlaces / kChunk;  // of two pairs each
  static constexpr size_t kSlack = 8;                         // bytes written behind a code's end

  // The places of a group that are set, and which are negative.
  struct Group {
    std::array<uint64_t, kMostWords> members, signs;
  };

  // Of two pairs the first words, and the second ones.
  static void split(const std::byte* pairs, size_t n_pairs, Group* group) {
    std::array<uint32_t, 2 * trits::kPairs + 2> words;
    words[2 * n_pairs] = words[2 * n_pairs + 1] = 0;
    std::memcpy(words.data(), pairs, trits::kPairSize * n_pairs);
    for (size_t i = 0; i < n_pairs; i += 2) {
      group->members[i / 2] = words[2 * i] | uint64_t{words[2 * i + 2]} << trits::kPlaces;
      group->signs[i / 2] = words[2 * i + 1] | uint64_t{words[2 * i + 3]} << trits::kPlaces;
    }
  }
  static void join(const Group& group, size_t n_pairs, std::byte* pairs) {
    std::array<uint32_t, 2 * trits::kPairs + 2> words;
    for (size_t i = 0; i < n_pairs; i += 2) {
      words[2 * i] = static_cast<uint32_t>(group.members[i / 2]);
      words[2 * i + 1] = static_cast<uint32_t>(group.signs[i / 2]);
      words[2 * i + 2] = static_cast<uint32_t>(group.members[i / 2] >> trits::kPlaces);
      words[2 * i + 3] = static_cast<uint32_t>(group.signs[i / 2] >> trits::kPlaces);
    }
    std::memcpy(pairs, words.data(), trits::kPairSize * n_pairs);
  }
  // Else a sign stands where nothing is set, and the unit has no code.
  static bool has_code(const Group& group, size_t n) {
    uint64_t odd = 0;
    for (size_t i = 0; i < chunks_of(n); ++i) odd |= group.signs[i] & ~group.members[i];
    return odd == 0;
  }

  // ---- encoding

  static std::byte* put_count(size_t count, std::byte* out) {
    Writer writer(Bytes(out, trits::kCountSize));
    writer.write_varint(count);
    return out + writer.position();
  }

  // A bit for each member; writes up to 8 bytes more.
  static std::byte* put_signs(const Group& group, size_t n, size_t count, std::byte* out) {
    uint64_t pending = 0;
    size_t filled = 0;
    std::byte* to = out;
    for (size_t i = 0; i < chunks_of(n); ++i) {
      const uint64_t bits = Ops::extract(group.signs[i], group.members[i]);
      pending |= bits << filled;
      const size_t more = filled + static_cast<size_t>(std::popcount(group.members[i]));
      if (more >= 64) {
        std::memcpy(to, &pending, sizeof(pending));
        to += sizeof(pending);
        pending = filled == 0 ? 0 : bits >> (64 - filled);
      }
      filled = more % 64;
    }
    std::memcpy(to, &pending, sizeof(pending));
    return out + bytes_of(count);
  }

  // A group's code, at most kCountSize longer than the group. `out` has kSlack more.
  static size_t code_group(const std::byte* pairs, size_t n_pairs, std::byte* out) {
    const size_t n = trits::kPlaces * n_pairs, pairs_size = trits::kPairSize * n_pairs;
    Group group;
    split(pairs, n_pairs, &group);
    const bool coded = has_code(group, n);
    const size_t count = coded ? count_ones(group.members.data(), n) : n + 1;
    std::byte* const begin = out;
    out = put_count(count, out);
    if (!coded) {
      std::memcpy(out, pairs, pairs_size);
      return static_cast<size_t>(out + pairs_size - begin);
    }
    if (count == 0) return static_cast<size_t>(out - begin);
    if (count < n && is_thin(n, count)) {
      std::array<uint32_t, kMostPlaces + kMorePlaces> places;
      list_places(group.members.data(), n, places.data());
      out = put_thin(places.data(), n, count, out);
    } else if (count < n) {
      std::memcpy(out, group.members.data(), bytes_of(n));
      out += bytes_of(n);
    }
    return static_cast<size_t>(put_signs(group, n, count, out) - begin);
  }

  static Status encode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
    size_t to = 0;
    const auto put = [&](const std::byte* data, size_t size) {
      if (size > dst.size() - to) return false;
      std::memcpy(dst.data() + to, data, size);
      to += size;
      return true;
    };
    std::array<std::byte, trits::kLengthSize> length;
    Writer head{Bytes(length)};
    head.write_varint(src.size());
    bool fits = put(length.data(), head.position());
    for (size_t at = 0; fits && at < src.size();) {
      const size_t n_pairs = trits::pairs_of(src.size() - at);
      const size_t size = n_pairs == 0 ? src.size() - at : trits::kHeadSize;  // the rest, or a head
      fits = put(src.data() + at, size);
      at += size;
      for (size_t i = 0; fits && i < n_pairs; i += trits::kPairs) {
        const size_t here = std::min(trits::kPairs, n_pairs - i);
        std::byte code[trits::kCountSize + trits::kPairSize * trits::kPairs + kSlack];
        fits = put(code, code_group(src.data() + at, here, code));
        at += trits::kPairSize * here;
      }
    }
    if (!fits)
      return fail(Code::kDstTooSmall, "trits: the code of %zu bytes does not fit %zu", src.size(),
                  dst.size());
    *written = to;
    return {};
  }

  // ---- decoding

  // The bits of `signs` go to the members in turn. False: bits are left.
  static bool get_signs(ConstBytes signs, size_t n, size_t count, Group* group) {
    size_t at = 0;
    for (size_t i = 0; i < chunks_of(n); ++i) {
      uint64_t bits = load_tail(signs, at / 8) >> at % 8;
      const size_t here = static_cast<size_t>(std::popcount(group->members[i]));
      if (at % 8 + here > 64) bits |= load_tail(signs, at / 8 + 8) << (64 - at % 8);
      group->signs[i] = Ops::deposit(bits, group->members[i]);
      at += here;
    }
    return count % 8 == 0 || static_cast<uint8_t>(signs.back()) >> count % 8 == 0;
  }

  // False: corrupt.
  static bool read_group(Reader* in, size_t n_pairs, std::byte* pairs) {
    const size_t n = trits::kPlaces * n_pairs, pairs_size = trits::kPairSize * n_pairs;
    uint64_t count;
    ConstBytes part;
    if (read_varint(*in, &count) != Varint::kOk || count > n + 1) return false;
    Group group;
    if (count == 0) {
      std::memset(pairs, 0, pairs_size);
      return true;
    }
    if (count == n + 1) {
      if (!in->take(pairs_size, &part)) return false;
      std::memcpy(pairs, part.data(), pairs_size);
      split(pairs, n_pairs, &group);
      return !has_code(group, n);
    }
    if (!get_set(in, n, count, group.members.data()) || !in->take(bytes_of(count), &part) ||
        !get_signs(part, n, count, &group))
      return false;
    join(group, n_pairs, pairs);
    return true;
  }

  static Status decode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
    Reader in(src);
    uint64_t size;
    if (read_varint(in, &size) != Varint::kOk)
      return fail(Code::kCorrupt, "trits: no size at the head of %zu bytes", src.size());
    if (size > dst.size())
      return fail(Code::kCorrupt, "trits: says %zu raw bytes, room for %zu", size_t{size},
                  dst.size());
    for (size_t at = 0; at < size;) {
      const size_t n_pairs = trits::pairs_of(size - at);
      ConstBytes plain;
      if (!in.take(n_pairs == 0 ? size - at : trits::kHeadSize, &plain))
        return fail(Code::kCorrupt, "trits: ends before byte %zu of %zu", at, size_t{size});
      std::memcpy(dst.data() + at, plain.data(), plain.size());
      at += plain.size();
      for (size_t i = 0; i < n_pairs; i += trits::kPairs) {
        const size_t here = std::min(trits::kPairs, n_pairs - i);
        if (!read_group(&in, here, dst.data() + at))
          return fail(Code::kCorrupt, "trits: no group of %zu pairs at raw byte %zu of %zu", here,
                      at, size_t{size});
        at += trits::kPairSize * here;
      }
    }
    if (in.left() != 0)
      return fail(Code::kCorrupt, "trits: %zu bytes behind the last unit", in.left());
    *written = size;
    return {};
  }
};

}  // namespace
}  // namespace wirepress
