// SPDX-License-Identifier: Apache-2.0
// What kernels of planes do in their own ways, in plain C++: the scalar kernel, and the rest of the
// others. Lists and planes that are written have kSlack bytes of room behind their end, and those
// that are read may be read as far, except where a comment says otherwise.
#pragma once

#include "codecs/planes/tree.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr size_t kLook = 512;    // values that are looked at before asking whether to go on
constexpr size_t kJoined = 256;  // elements between two looks ahead

inline bool bit(const std::byte* bitmap, size_t i) {
  return ((bitmap[i / 8] >> i % 8) & std::byte{1}) != std::byte{0};
}

struct PlainOps {
  static bool line_is_zero(const std::byte* line) {
    std::array<uint64_t, kLine / 8> words;
    std::memcpy(words.data(), line, kLine);
    uint64_t any = 0;
    for (const uint64_t word : words) any |= word;
    return any == 0;
  }

  // Which of the elements begin .. n of src are not 0: a bit each, in ceil(n / 8) bytes, of which
  // the first begin / 8 are there. Without slack.
  template <typename Word>
  static void mark(const std::byte* src, size_t begin, size_t n, std::byte* bits) {
    for (size_t i = begin; i < n; i += 8) {
      unsigned byte = 0;
      for (size_t k = i; k < std::min(n, i + 8); ++k) {
        Word word;
        std::memcpy(&word, src + k * sizeof(Word), sizeof(Word));
        byte |= static_cast<unsigned>(word != 0) << (k - i);
      }
      bits[i / 8] = static_cast<std::byte>(byte);
    }
  }
  // The elements begin .. n of src whose bit is 1. src and bits without slack.
  template <typename Word>
  static void keep(const std::byte* src, const std::byte* bits, size_t begin, size_t n,
                   std::byte* out) {
    for (size_t i = begin; i < n; ++i) {
      std::memcpy(out, src + i * sizeof(Word), sizeof(Word));
      out += bit(bits, i) ? sizeof(Word) : 0;
    }
  }
  // The way back: n elements, 0 where the bit is 0. bits and dst without slack.
  template <typename Word>
  static void spread(const std::byte* from, const std::byte* bits, size_t begin, size_t n,
                     std::byte* dst) {
    for (size_t i = begin; i < n; ++i) {
      Word word;
      std::memcpy(&word, from, sizeof(Word));
      word = bit(bits, i) ? word : Word{0};
      std::memcpy(dst + i * sizeof(Word), &word, sizeof(Word));
      from += bit(bits, i) ? sizeof(Word) : 0;
    }
  }

  // Elements begin .. n of src; byte p of element i goes to planes[p] + i. Without slack.
  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, uint64_t base,
                    std::byte* const* planes) {
    for (size_t i = begin; i < n; ++i) {
      Word word;
      std::memcpy(&word, src + i * sizeof(Word), sizeof(Word));
      word = turn(word, base);
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p)
        planes[p][i] = static_cast<std::byte>(word >> 8 * p);
    }
  }
  // Without slack. past_caches: dst begins a line, and may be written past the caches; settle() is
  // then called after the last.
  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, uint64_t base,
                   bool /*past_caches*/, std::byte* dst) {
    for (size_t i = begin; i < n; ++i) {
      Word word = 0;
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p)
        word = static_cast<Word>(word | static_cast<Word>(planes[p][i]) << 8 * p);
      word = turn_back(word, base);
      std::memcpy(dst + i * sizeof(Word), &word, sizeof(Word));
    }
  }

  static void settle() {}

  // Each value's entry of a table of 256. Most entries are `usual`.
  static void translate(const std::byte* values, size_t n, const uint8_t* table, uint8_t /*usual*/,
                        std::byte* out) {
    for (size_t i = 0; i < n; ++i)
      out[i] = static_cast<std::byte>(table[static_cast<uint8_t>(values[i])]);
  }

  // Of n values those with one leaf, in order; returns their end.
  static std::byte* pick(const std::byte* leaves, const std::byte* values, size_t n, uint8_t leaf,
                         std::byte* out) {
    for (size_t i = 0; i < n; ++i) {
      *out = values[i];
      out += static_cast<uint8_t>(leaves[i]) == leaf ? 1 : 0;
    }
    return out;
  }

  // Stores for each of n leaves whether it is `split` or above, in ceil(n / 8) bytes, and lists
  // those below and those above where asked. Returns how many are above.
  template <bool kLeft, bool kRight>
  static size_t divide(const std::byte* list, size_t n, uint8_t split, std::byte* bits,
                       std::byte* left, std::byte* right) {
    size_t ones = 0;
    for (size_t i = 0; i < n; i += 8) {
      const size_t end = std::min(n, i + 8);
      unsigned byte = 0;
      for (size_t k = i; k < end; ++k) {
        const unsigned above = static_cast<uint8_t>(list[k]) >= split;
        byte |= above << (k - i);
        if (kLeft) left[k - ones] = list[k];
        if (kRight) right[ones] = list[k];
        ones += above;
      }
      bits[i / 8] = static_cast<std::byte>(byte);
    }
    return ones;
  }

  // The other way: n values, from the left where the bit is 0, else from the right; without lists
  // all on a side are `a` or `b`. bits without slack.
  template <bool kLeft, bool kRight>
  static void merge(const std::byte* bits, size_t n, const std::byte* left, const std::byte* right,
                    std::byte a, std::byte b, std::byte* out) {
    for (size_t i = 0; i < n; i += 8) {
      auto byte = static_cast<unsigned>(bits[i / 8]);
      const size_t end = std::min(n, i + 8);
      for (size_t k = i; k < end; ++k, byte >>= 1) {
        const size_t one = byte & 1;
        const std::byte from_left = kLeft ? *left : a;
        const std::byte from_right = kRight ? *right : b;
        out[k] = one != 0 ? from_right : from_left;
        if (kLeft) left += 1 - one;
        if (kRight) right += one;
      }
    }
  }

  // Of n > 0 values their OR and their AND.
  static std::array<uint8_t, 2> common(const std::byte* values, size_t n) {
    std::byte any{0}, all{0xFF};
    for (size_t i = 0; i < n; ++i) any |= values[i], all &= values[i];
    return {static_cast<uint8_t>(any), static_cast<uint8_t>(all)};
  }

  // Each value less the one before it, plus 128; before the first is 0.
  static void differences(const std::byte* values, size_t n, std::byte* out) {
    out[0] = static_cast<std::byte>(static_cast<uint8_t>(values[0]) + 128);
    for (size_t i = 1; i < n; ++i)
      out[i] = static_cast<std::byte>(static_cast<uint8_t>(values[i]) -
                                      static_cast<uint8_t>(values[i - 1]) + 128);
  }
  // The way back, in place.
  static void sums(std::byte* values, size_t n) {
    uint8_t sum = 0;
    for (size_t i = 0; i < n; ++i) {
      sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(values[i]) + 128);
      values[i] = static_cast<std::byte>(sum);
    }
  }

  // Of eight values at a time and each bit of `mask`, the lowest first, a byte with that bit of
  // each. The last values are followed by zeros.
  static void take_bits(const std::byte* values, size_t n, uint8_t mask, std::byte* out) {
    take_bits_by<PlainBytes>(values, n, mask, out);
  }
  // The way back: sets or clears the bits of `mask`, and leaves the others as they are if kOver,
  // else clears them. bits without slack.
  template <bool kOver>
  static void put_bits(const std::byte* bits, size_t n, uint8_t mask, std::byte* values) {
    put_bits_by<PlainBytes, kOver>(bits, n, mask, values);
  }

 protected:
  // The bytes of a word that a mask selects, close together, and back.
  struct PlainBytes {
    static uint64_t squeeze(uint64_t word, uint8_t mask) {
      uint64_t close = 0;
      unsigned at = 0;
      for (unsigned rest = mask; rest != 0; rest &= rest - 1, at += 8)
        close |= (word >> 8 * std::countr_zero(rest) & 255) << at;
      return close;
    }
    static uint64_t spread(uint64_t close, uint8_t mask) {
      uint64_t word = 0;
      for (unsigned rest = mask; rest != 0; rest &= rest - 1, close >>= 8)
        word |= (close & 255) << 8 * std::countr_zero(rest);
      return word;
    }
  };

  // Eight squares of 8 x 8 bits at a time, so that vectors turn them.
  using Squares = std::array<uint64_t, kLine / 8>;
  static void transpose(Squares* squares) {
    for (uint64_t& square : *squares) square = transpose(square);
  }

  template <typename Bytes>
  static void take_bits_by(const std::byte* values, size_t n, uint8_t mask, std::byte* out) {
    const auto width = static_cast<size_t>(std::popcount(mask));
    for (size_t i = 0; i < n; i += kLine) {
      Squares squares{};
      std::memcpy(squares.data(), values + i, std::min(kLine, n - i));
      transpose(&squares);
      for (const uint64_t square : squares) {
        const uint64_t close = Bytes::squeeze(square, mask);
        std::memcpy(out, &close, sizeof(close));
        out += width;
      }
    }
  }
  template <typename Bytes, bool kOver>
  static void put_bits_by(const std::byte* bits, size_t n, uint8_t mask, std::byte* values) {
    const auto width = static_cast<size_t>(std::popcount(mask));
    const std::byte* const end = bits + (n + 7) / 8 * width;
    for (size_t i = 0; i < n; i += kLine) {
      Squares squares{};
      for (size_t k = 0; k < squares.size() && i + 8 * k < n; ++k, bits += width)
        squares[k] = Bytes::spread(end - bits >= 8 ? load(bits, 8) : load(bits, width), mask);
      transpose(&squares);
      if (kOver) {
        Squares under;
        std::memcpy(under.data(), values + i, sizeof(under));
        for (size_t k = 0; k < squares.size(); ++k)
          squares[k] |= under[k] & ~(uint64_t{0x0101010101010101} * mask);
      }
      std::memcpy(values + i, squares.data(), sizeof(squares));
    }
  }

  static uint64_t load(const std::byte* from, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, from, size);
    return word;
  }
  // Of a square of 8 x 8 bits: rows become columns.
  static uint64_t transpose(uint64_t x) {
    uint64_t t = (x ^ x >> 7) & 0x00AA00AA00AA00AA;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCC;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0;
    return x ^ t ^ t << 28;
  }
};

}  // namespace planes
}  // namespace
}  // namespace wirepress
