// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/data.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace wirepress::conformance {
namespace {

// Calls word(i) for each 32-bit word; the last one is cut.
template <typename Word>
void fill_words(Bytes out, Word word) {
  for (size_t i = 0; i < out.size(); i += 4) {
    const uint32_t value = word(i / 4);
    std::memcpy(out.data() + i, &value, std::min<size_t>(4, out.size() - i));
  }
}

void zeros(Random&, Bytes out) {
  if (!out.empty()) std::memset(out.data(), 0, out.size());
}

void ramp(Random& random, Bytes out) {
  const uint32_t first = static_cast<uint32_t>(random.next());
  fill_words(out, [&](size_t i) { return first + static_cast<uint32_t>(i); });
}

void text(Random& random, Bytes out) {
  static constexpr std::string_view kWords[] = {
      "the ",   "of ",      "and ",   "wave ",     "frame ", "a ",     "block ",
      "bytes ", "is ",      "model ", "rank ",     "\n",     "sends ", "link. ",
      "speed ", "to ",      "in ",    "velocity ", "1500 ",  "3.14 ",  "receive ",
      "that ",  "message ", "with ",  "for ",      "time "};
  for (size_t i = 0; i < out.size();) {
    // The smaller of two draws: some words are much more frequent, as in text.
    const size_t a = random.below(std::size(kWords));
    const std::string_view word = kWords[std::min<size_t>(a, random.below(std::size(kWords)))];
    const size_t n = std::min(word.size(), out.size() - i);
    std::memcpy(out.data() + i, word.data(), n);
    i += n;
  }
}

void noise(Random& random, Bytes out) {
  fill_words(out, [&](size_t) { return static_cast<uint32_t>(random.next()); });
}

// Every kind of float32: normal, denormal, both zeros and infinities, quiet and signalling NaNs,
// the largest and smallest of each.
void float_bits(Random& random, Bytes out) {
  static constexpr uint32_t kEdges[] = {0x00000000, 0x00000001, 0x007FFFFF, 0x00800000,
                                        0x3F800000, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F800000,
                                        0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF};
  uint32_t last = 0;
  fill_words(out, [&](size_t) {
    const uint64_t draw = random.next();
    const uint32_t bits = static_cast<uint32_t>(draw);
    const uint32_t sign = bits & 0x80000000;
    switch ((draw >> 32) % 8) {
      case 0:
        return last = sign | kEdges[(draw >> 40) % std::size(kEdges)];
      case 1:
        return last = bits & 0x807FFFFF;
      case 2:
        return last = bits | 0x7F800000;
      case 3:
        return last;
      case 4:
        return last = bits & 0x80000000;
      case 5:
        return last = (last & 0x7F800000) | (bits & 0x807FFFFF);
      default:
        return last = bits;
    }
  });
}

void wave(Random& random, Bytes out) {
  const double phase = random.unit();
  fill_words(out, [&](size_t i) {
    const double x = static_cast<double>(i) * 0.013 + phase;
    return std::bit_cast<uint32_t>(
        static_cast<float>(std::sin(x) * std::exp(-std::fmod(x, 60.0) / 20) * 1e-3));
  });
}

// As gradients are: many exact zeros, the rest of all sizes around 1e-3.
void gradient(Random& random, Bytes out) {
  fill_words(out, [&](size_t) -> uint32_t {
    if (random.below(10) < 4) return 0;
    const double size = -1e-3 * std::log(1 - random.unit());
    return std::bit_cast<uint32_t>(static_cast<float>(random.below(2) ? size : -size));
  });
}

constexpr Generator kGenerators[] = {
    {"zeros", zeros},           {"ramp", ramp}, {"text", text},         {"random", noise},
    {"float_bits", float_bits}, {"wave", wave}, {"gradient", gradient},
};

}  // namespace

std::span<const Generator> generators() { return kGenerators; }

const Generator* find_generator(const char* name) {
  for (const Generator& generator : kGenerators)
    if (std::string_view(name) == generator.name) return &generator;
  return nullptr;
}

}  // namespace wirepress::conformance
