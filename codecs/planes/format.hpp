// SPDX-License-Identifier: Apache-2.0
// What a payload is made of (spec.md), for kernels of processors and of GPUs. In an unnamed
// namespace, because each kernel compiles it for its instruction set.
#pragma once

#include <bit>

#include "codecs/planes/lengths.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr size_t kChunk = 16384;  // elements
constexpr size_t kLine = 64;
constexpr size_t kMostPlanes = 9;  // of bytes, and the signs

enum Flag : uint8_t { kLines = 1, kSigns = 2, kDifferences = 4, kElements = 8, kFlags = 15 };
enum Mode : uint8_t { kRaw = 0, kByChunk = 1, kTable = 2 };                 // of a plane
enum Kind : uint8_t { kStored = 0, kCoded = 1, kConstant = 2, kBits = 3 };  // of a chunk of it

constexpr unsigned sign_bit(size_t size) { return size == 8 ? 3 : 0; }  // of plane 0

// Elements as planes take them apart, and back. `base` is for doubles alone: it goes off exponents
// that are not 0, and stands in its place in the word.
constexpr uint64_t kExponent64 = uint64_t{0x7FF} << 52;
template <typename Word>
constexpr Word turn(Word word, uint64_t base) {
  if constexpr (sizeof(Word) < 8)
    return std::rotl(word, 1);
  else
    return std::rotl(word - ((word & kExponent64) != 0 ? base : 0), 4);
}
template <typename Word>
constexpr Word turn_back(Word word, uint64_t base) {
  if constexpr (sizeof(Word) < 8) {
    return std::rotr(word, 1);
  } else {
    const Word back = std::rotr(word, 4);
    return back + ((back & kExponent64) != 0 ? base : 0);
  }
}

// Whole lines of elements are a sample: all, or one in `step`.
struct SampleLines {
  size_t step = 1, n = 0;
  constexpr explicit SampleLines(size_t n_elements) {
    const size_t lines = n_elements / kLine;
    step = lines <= 256 ? 1 : lines / 1024 > 8 ? lines / 1024 : 8;
    n = (lines + step - 1) / step;
  }
};

// Whether bytes are so evenly spread that a code would not pay: by the squares of the counts of 32
// lines of a sample. Noise has 18432 on average; from the limit on a code saves about a 16th.
constexpr size_t kNoiseLines = 32;
constexpr uint64_t kNoise = 25600;

// The first and the last value that has a code.
struct Range {
  size_t first = 0, last = kValues - 1;
  constexpr explicit Range(const Lengths& lengths) {
    while (first < last && lengths[first] == 0) ++first;
    while (last > first && lengths[last] == 0) --last;
  }
  constexpr size_t table_size() const { return 2 + (last - first + 3) / 2; }
};

// ---- how planes are stored, by what a sample says
// ------------------------------------------------

constexpr bool pays(uint64_t bits, size_t table_size, size_t sampled, size_t n) {
  return bits * n / (8 * sampled) + table_size < n - n / 16;
}

struct Choice {
  Mode mode;
  uint64_t bits;  // that the sample will take
};
// Of a plane of n bytes: `any` and `all` are the OR and the AND of the sample's.
constexpr Choice choice_of(uint8_t any, uint8_t all, uint64_t coded_bits, size_t table_size,
                           size_t sampled, size_t n) {
  const auto bits = static_cast<size_t>(std::popcount(any));
  const size_t close = sampled / 16;
  const Mode mode = bits < 8 ? kByChunk : kRaw;
  if (any != all && bits < 8 &&
      (bits > 2 ? bits * sampled <= coded_bits + close : bits * sampled + close <= coded_bits))
    return {mode, bits * sampled};
  if (!pays(coded_bits, table_size, sampled, n)) return {mode, any == all ? 0 : bits * sampled};
  return {kTable, any == all ? 0 : coded_bits};
}

// Of the upper plane, whether differences of neighbours, n_steps of them, are better: a 32nd of a
// bit a value is what undoing them is worth.
constexpr bool better_by_steps(uint64_t bits, uint64_t steps_bits, size_t sampled, size_t n_steps) {
  return steps_bits * sampled * 32 + n_steps * sampled < bits * n_steps * 32;
}

// Whether signs, as bytes, repeat so that a code of them is worth a plane: beside its payment.
constexpr bool repeats(uint64_t bits, size_t sampled) { return 16 * bits < 13 * sampled; }

}  // namespace planes
}  // namespace
}  // namespace wirepress
