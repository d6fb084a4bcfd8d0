// SPDX-License-Identifier: Apache-2.0
// A block's lines and elements, and what a sample says of how its planes are best stored (spec.md).
#pragma once

#include <optional>
#include <utility>

#include "codecs/planes/estimate.hpp"
#include "codecs/planes/plain.hpp"

namespace wirepress {
namespace {
namespace planes {

// ---- lines ----------------------------------------------------------------------------------

inline size_t line_size(size_t line, size_t total) { return std::min(kLine, total - line * kLine); }

// Fills the bitmap of lines that are not zero, and says how many bytes the others have.
template <typename Ops>
size_t find_lines(ConstBytes src, size_t n_lines, std::byte* bitmap) {
  constexpr size_t kAtOnce = 64;
  size_t zeros = 0, i = 0;
  for (; (i + kAtOnce) * kLine <= src.size(); i += kAtOnce) {
    uint64_t some = 0;  // in a register: lines and bitmap might overlap, for all a compiler knows
    const std::byte* const line = src.data() + i * kLine;
#pragma GCC unroll 8
    for (size_t k = 0; k < kAtOnce; ++k) {
      some |= uint64_t{!Ops::line_is_zero(line + k * kLine)} << k;
    }
    std::memcpy(bitmap + i / 8, &some, sizeof(some));
    zeros += kLine * (kAtOnce - static_cast<size_t>(std::popcount(some)));
  }
  std::memset(bitmap + i / 8, 0, (n_lines + 7) / 8 - i / 8);
  for (; i < n_lines; ++i) {
    const size_t size = line_size(i, src.size());
    const std::byte* const line = src.data() + i * kLine;
    const bool zero = size == kLine ? Ops::line_is_zero(line)
                                    : std::all_of(line, line + size,
                                                  [](std::byte b) { return b == std::byte{0}; });
    zeros += zero ? size : 0;
    bitmap[i / 8] |= static_cast<std::byte>(!zero << i % 8);
  }
  return zeros;
}
inline ConstBytes keep_lines(ConstBytes src, size_t n_lines, const std::byte* bitmap,
                             std::byte* to) {
  size_t kept = 0;
  for (size_t i = 0; i < n_lines; ++i) {
    if (!bit(bitmap, i)) continue;
    const size_t size = line_size(i, src.size());
    std::memcpy(to + kept, src.data() + i * kLine, size);
    kept += size;
  }
  return {to, kept};
}
inline void spread_lines(const std::byte* from, const std::byte* bitmap, size_t n_lines,
                         Bytes dst) {
  for (size_t i = 0; i < n_lines; ++i) {
    const size_t size = line_size(i, dst.size());
    if (bit(bitmap, i)) {
      std::memcpy(dst.data() + i * kLine, from, size);
      from += size;
    } else {
      std::memset(dst.data() + i * kLine, 0, size);
    }
  }
}

// ---- elements -------------------------------------------------------------------------------

// How many of the lowest n bits are 1; those behind them are 0.
inline size_t ones(const std::byte* bits, size_t n) {
  size_t sum = 0, i = 0;
  for (; i + 64 <= n; i += 64) {
    uint64_t word;
    std::memcpy(&word, bits + i / 8, sizeof(word));
    sum += static_cast<size_t>(std::popcount(word));
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bits + i / 8, (n - i + 7) / 8);
  return sum + static_cast<size_t>(std::popcount(rest));
}
template <typename Ops>
void mark(const std::byte* src, size_t n, size_t size, std::byte* bits) {
  if (size == 2) return Ops::template mark<uint16_t>(src, 0, n, bits);
  if (size == 4) return Ops::template mark<uint32_t>(src, 0, n, bits);
  Ops::template mark<uint64_t>(src, 0, n, bits);
}
template <typename Ops>
void keep(const std::byte* src, const std::byte* bits, size_t n, size_t size, std::byte* out) {
  if (size == 2) return Ops::template keep<uint16_t>(src, bits, 0, n, out);
  if (size == 4) return Ops::template keep<uint32_t>(src, bits, 0, n, out);
  Ops::template keep<uint64_t>(src, bits, 0, n, out);
}
template <typename Ops>
void spread(const std::byte* from, const std::byte* bits, size_t n, size_t size, std::byte* dst) {
  if (size == 2) return Ops::template spread<uint16_t>(from, bits, 0, n, dst);
  if (size == 4) return Ops::template spread<uint32_t>(from, bits, 0, n, dst);
  Ops::template spread<uint64_t>(from, bits, 0, n, dst);
}

template <typename Ops>
void split(const std::byte* src, size_t n, size_t size, uint64_t base, std::byte* const* to) {
  if (size == 2) return Ops::template split<uint16_t>(src, 0, n, base, to);
  if (size == 4) return Ops::template split<uint32_t>(src, 0, n, base, to);
  Ops::template split<uint64_t>(src, 0, n, base, to);
}
template <typename Ops>
void join(const std::byte* const* from, size_t n, size_t size, uint64_t base, bool past_caches,
          std::byte* dst) {
  if (size == 2) return Ops::template join<uint16_t>(from, 0, n, base, past_caches, dst);
  if (size == 4) return Ops::template join<uint32_t>(from, 0, n, base, past_caches, dst);
  Ops::template join<uint64_t>(from, 0, n, base, past_caches, dst);
}

// What goes off the exponents of doubles: one less than the least that is not 0.
inline unsigned base_of(ConstBytes body, size_t n) {
  uint32_t least = 2047;
  for (size_t i = 0; i < n; ++i) {
    uint32_t upper;
    std::memcpy(&upper, body.data() + 8 * i + 4, sizeof(upper));
    least = std::min(least, (upper >> 20 & 2047) - 1);  // that of 0 is large
  }
  return least < 2047 ? least : 0;
}

// Signs as bits: each xor the one before it, of the first 64 the rest of a chunk follows.
inline void chain_signs(std::byte* signs, size_t n) {
  uint64_t before = 0;
  for (size_t i = 0; i < n; i += 64) {
    uint64_t word;
    std::memcpy(&word, signs + i / 8, sizeof(word));
    uint64_t chained = word ^ (word << 1 | before);
    before = word >> 63;
    if (n - i < 64) chained &= (uint64_t{1} << (n - i)) - 1;
    std::memcpy(signs + i / 8, &chained, sizeof(chained));
  }
}
inline void unchain_signs(std::byte* signs, size_t n) {
  std::array<uint64_t, kChunk / 64> words{};
  const size_t n_words = (n + 63) / 64;
  std::memcpy(words.data(), signs, 8 * n_words);
  for (uint64_t& word : words) {  // all, so that vectors do it
    word ^= word << 1;
    word ^= word << 2;
    word ^= word << 4;
    word ^= word << 8;
    word ^= word << 16;
    word ^= word << 32;
  }
  uint64_t before = 0;  // all ones behind a 1
  for (size_t i = 0; i < n_words; ++i) {
    words[i] ^= before;
    before = 0 - (words[i] >> 63);
  }
  std::memcpy(signs, words.data(), 8 * n_words);
}

// ---- how planes of a block are stored -------------------------------------------------------

struct Plane {
  Mode mode = kRaw;
  Lengths lengths;  // of kTable
  std::optional<Tree> tree;
};

struct Plan {
  uint8_t flags = 0;
  unsigned base = 0;
  size_t n_planes = 0;  // with the signs, if they are apart
  std::array<Plane, kMostPlanes> plane;

  uint64_t base_in_word() const { return uint64_t{base} << 52; }
};

inline bool is_noise(const std::byte* values, size_t n) {
  constexpr size_t kRuns = kNoiseLines;
  if (n < kRuns * kLine) return false;
  std::array<uint32_t, kValues> counts{};
  for (size_t run = 0; run < kRuns; ++run) {
    const std::byte* const from = values + n / kLine * run / kRuns * kLine;
    for (size_t i = 0; i < kLine; ++i) ++counts[static_cast<uint8_t>(from[i])];
  }
  uint64_t squares = 0;
  for (const uint64_t count : counts) squares += count * count;
  return squares < kNoise;
}

inline bool pays(const Estimate& estimate, size_t sampled, size_t n) {
  return pays(estimate.bits, Range(estimate.lengths).table_size(), sampled, n);
}

// Whether values of so many bits are spread so evenly that no code of them can be smaller by as
// much as would count: a code takes at least the entropy, which is at least that of collisions,
// minus the logarithm of the sum of squares over the square of the sum. 26 / 25 is below the root
// that choice_of's 16th of a bit is.
inline bool fill_their_bits(const Counts& counts, size_t sampled, size_t bits) {
  if (bits <= 2 || bits >= 8 || sampled < kNoiseLines * kLine) return false;
  uint64_t squares = 0;
  for (size_t s = 0; s < kValues; ++s) squares += uint64_t{counts[s]} * counts[s];
  return (25 * squares << bits) <= 26 * uint64_t{sampled} * sampled;
}

// By a sample of a plane of n bytes. Returns the bits that the sample will take.
template <typename Ops>
uint64_t choose(const std::byte* sample, size_t sampled, size_t n, Plane* plane) {
  const auto [any, all] = Ops::common(sample, sampled);
  const auto bits = static_cast<size_t>(std::popcount(any));
  plane->mode = bits < 8 ? kByChunk : kRaw;
  if (bits == 8 && is_noise(sample, sampled)) return bits * sampled;
  Counts counts = count(sample, sampled);
  if (fill_their_bits(counts, sampled, bits)) return bits * sampled;
  const Estimate coded = estimate(std::move(counts), sampled);
  const Choice choice =
      choice_of(any, all, coded.bits, Range(coded.lengths).table_size(), sampled, n);
  plane->mode = choice.mode;
  if (choice.mode == kTable) plane->lengths = coded.lengths;
  return choice.bits;
}

// The upper plane as it is or by differences. 0: neither pays; else the bits that the sample takes.
template <typename Ops>
uint64_t choose_upper(const std::byte* sample, size_t sampled, size_t n, std::byte* room,
                      Plan* plan, Plane* plane) {
  Estimate best = estimate(count(sample, sampled), sampled);
  const size_t lines = sampled / kLine;
  if (lines > 0) {
    const size_t n_steps = lines * (kLine - 1);
    std::array<std::byte, kLine + kSlack> line;
    for (size_t i = 0; i < lines; ++i) {
      Ops::differences(sample + i * kLine, kLine, line.data());
      std::memcpy(room + i * (kLine - 1), line.data() + 1, kLine - 1);
    }
    const Estimate steps = estimate(count(room, n_steps), n_steps);
    if (better_by_steps(best.bits, steps.bits, sampled, n_steps)) {
      best = steps;
      best.bits = steps.bits * sampled / n_steps;
      plan->flags |= kDifferences;
    }
  }
  if (!pays(best, sampled, n)) {
    plan->flags &= static_cast<uint8_t>(~kDifferences);
    return 0;
  }
  plane->mode = kTable;
  plane->lengths = best.lengths;
  return best.bits;
}

// Whether signs repeat so that they are worth a plane of their own: the bits that those of the
// sample take, or 0.
template <typename Ops>
uint64_t choose_signs(std::byte* low, size_t sampled, size_t n, uint8_t mask, std::byte* room,
                      Plane* plane) {
  const size_t lines = sampled / kLine;
  if (lines == 0) return 0;
  Ops::take_bits(low, lines * kLine, mask, room);
  size_t changes = 0;
  for (size_t i = 0; i < lines; ++i) {
    uint64_t word;
    std::memcpy(&word, room + 8 * i, sizeof(word));
    word ^= word << 1 | (word & 1);
    changes += static_cast<size_t>(std::popcount(word));
    std::memcpy(room + 8 * i, &word, sizeof(word));
  }
  if (4 * changes > sampled) return 0;
  const Estimate coded = estimate(count(room, 8 * lines), 8 * lines);
  if (!repeats(coded.bits, sampled) || !pays(coded, 8 * lines, (n + 7) / 8)) return 0;
  plane->mode = kTable;
  plane->lengths = coded.lengths;
  for (size_t i = 0; i < sampled; ++i) low[i] &= static_cast<std::byte>(~mask);
  return coded.bits;
}

}  // namespace planes
}  // namespace
}  // namespace wirepress
