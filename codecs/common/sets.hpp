// SPDX-License-Identifier: Apache-2.0
// Sets of k of n places, n at most 65,536: a bitmap in memory; in a code nothing, a bitmap or
// Elias-Fano (codecs/sparse/spec.md, "Set").
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.hpp"

namespace wirepress {
namespace {

constexpr size_t kGroup = 65536;  // elements
constexpr size_t kChunk = 64;     // elements: bits of a word of a bitmap
constexpr size_t kWords = kGroup / kChunk;
constexpr size_t kMostLevels = 32;

using Bitmap = std::array<uint64_t, kWords>;

constexpr size_t bytes_of(size_t bits) { return (bits + 7) / 8; }
constexpr size_t chunks_of(size_t n) { return (n + kChunk - 1) / kChunk; }

// Elias-Fano below a quarter.
constexpr bool is_thin(size_t n, size_t k) { return 4 * k < n; }

struct EliasFano {
  EliasFano(size_t n, size_t k)
      : low_bits(static_cast<unsigned>(std::bit_width(n / k)) - 1),
        high_size(bytes_of(k + ((n - 1) >> low_bits))),
        low_size(bytes_of(k * low_bits)) {}
  unsigned low_bits;
  size_t high_size, low_size;
};

constexpr size_t kMorePlaces = 8;  // written behind the last one

// The places of the ones. Several of each word without a branch: where
// some words have ones and others none, branches are guessed wrong.
inline void list_places(const uint64_t* members, size_t n, uint32_t* places) {
  constexpr int kAtOnce = 3;
  for (size_t word = 0; word < chunks_of(n); ++word) {
    uint64_t bits = members[word];
    const size_t count = static_cast<size_t>(std::popcount(bits));
    const uint32_t base = static_cast<uint32_t>(kChunk * word);
    uint32_t* to = places;
    for (int i = 0; i < kAtOnce; ++i, bits &= bits - 1)
      *to++ = base + static_cast<uint32_t>(std::countr_zero(bits));
    for (; bits != 0; bits &= bits - 1)
      *to++ = base + static_cast<uint32_t>(std::countr_zero(bits));
    places += count;
  }
}

// Bits gather in registers: in memory each place would wait for the one before it. Writes up to 4
// bytes more.
inline std::byte* put_thin(const uint32_t* places, size_t n, size_t k, std::byte* out) {
  const EliasFano parts(n, k);
  const unsigned width = parts.low_bits;
  const size_t mask = (size_t{1} << width) - 1;
  std::byte* low = out + parts.high_size;
  uint64_t high = 0, pending = 0;
  size_t word = 0;      // of the high bits
  unsigned filled = 0;  // bits of `pending`, under 32 between places
  for (size_t i = 0; i < k; ++i) {
    const size_t p = places[i], at = (p >> width) + i;
    for (; word < at / 64; ++word, high = 0) std::memcpy(out + 8 * word, &high, sizeof(high));
    high |= uint64_t{1} << at % 64;
    pending |= static_cast<uint64_t>(p & mask) << filled;
    filled += width;
    if (filled >= 32) {
      std::memcpy(low, &pending, 4);
      low += 4;
      pending >>= 32;
      filled -= 32;
    }
  }
  for (size_t at = 8 * word; at < parts.high_size; at += 8, high = 0)
    std::memcpy(out + at, &high, std::min<size_t>(8, parts.high_size - at));
  std::memcpy(low, &pending, 4);
  return low + bytes_of(filled);
}

inline uint64_t load_tail(ConstBytes bytes, size_t at) {
  uint64_t word = 0;
  if (at + sizeof(word) <= bytes.size()) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
  } else if (at < bytes.size()) {
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  }
  return word;
}

inline bool get_thin(Reader* in, size_t n, size_t k, uint64_t* members) {
  const EliasFano parts(n, k);
  const unsigned width = parts.low_bits;
  ConstBytes high, low;
  if (!in->take(parts.high_size, &high) || !in->take(parts.low_size, &low)) return false;
  if (const size_t rest = k * width % 8; rest != 0 && static_cast<uint8_t>(low.back()) >> rest != 0)
    return false;
  const size_t mask = (size_t{1} << width) - 1;
  std::memset(members, 0, 8 * chunks_of(n));
  size_t i = 0, next = 0;  // items, and the least position of the next one
  for (size_t at = 0; at < high.size(); at += 8) {
    for (uint64_t bits = load_tail(high, at); bits != 0; bits &= bits - 1) {
      if (i == k) return false;
      const size_t bit = 8 * at + static_cast<size_t>(std::countr_zero(bits));
      const size_t rest = static_cast<size_t>(load_tail(low, i * width / 8) >> i * width % 8);
      const size_t p = ((bit - i) << width) | (rest & mask);
      if (p < next || p >= n) return false;
      members[p / kChunk] |= uint64_t{1} << p % kChunk;
      next = p + 1;
      ++i;
    }
  }
  return i == k;
}

// A bitmap of n bits, of which the last word's other bits are 0.
inline bool get_bitmap(Reader* in, size_t n, uint64_t* bits) {
  ConstBytes bytes;
  if (!in->take(bytes_of(n), &bytes)) return false;
  if (n == 0) return true;
  bits[chunks_of(n) - 1] = 0;
  std::memcpy(bits, bytes.data(), bytes.size());
  return n % kChunk == 0 || bits[n / kChunk] >> n % kChunk == 0;
}

inline size_t count_ones(const uint64_t* bits, size_t n) {
  size_t count = 0;
  for (size_t word = 0; word < chunks_of(n); ++word)
    count += static_cast<size_t>(std::popcount(bits[word]));
  return count;
}

// 0 < k <= n.
inline bool get_set(Reader* in, size_t n, size_t k, uint64_t* members) {
  if (k < n) {
    if (is_thin(n, k)) return get_thin(in, n, k, members);
    return get_bitmap(in, n, members) && count_ones(members, n) == k;
  }
  std::memset(members, 0xFF, 8 * chunks_of(n));
  if (n % kChunk != 0) members[n / kChunk] = (uint64_t{1} << n % kChunk) - 1;
  return true;
}

}  // namespace
}  // namespace wirepress
