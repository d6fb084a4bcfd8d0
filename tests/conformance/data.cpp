// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

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

// The float32 word as a float of `exponent` and `fraction` bits.
uint64_t retype(uint32_t word, int exponent, int fraction) {
  const int most = (1 << exponent) - 1, bias = most >> 1;
  const int e32 = static_cast<int>(word >> 23 & 0xFF);
  int e = e32 - 127 + bias;
  if (e32 == 0 || e32 == 255)
    e = e32 ? most : 0;
  else
    e = std::min(std::max(e, 1), most - 1);
  uint64_t f = word & 0x7FFFFF;
  // Wider: something in the new low bits wherever there was something before.
  f = fraction >= 23 ? f << (fraction - 23) | f * 0x9E3779B1 % (uint64_t{1} << (fraction - 23))
                     : f >> (23 - fraction);
  return static_cast<uint64_t>(word >> 31) << (exponent + fraction) |
         static_cast<uint64_t>(e) << fraction | f;
}

uint64_t retype(uint32_t word, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return retype(word, 5, 10);
    case DType::kBfloat16:
      return retype(word, 8, 7);
    case DType::kFloat64:
      return retype(word, 11, 52);
    default:
      return word * uint64_t{0x100000001};
  }
}

}  // namespace

void fill_as(DType dtype, const Generator& generator, Random& random, Bytes out) {
  const size_t size = dtype_size(dtype);
  if (dtype == DType::kBytes || size == 4) return generator.fill(random, out);
  std::vector<std::byte> words(4 * (out.size() / size + 1));
  generator.fill(random, words);
  for (size_t i = 0; i < out.size(); i += size) {
    uint32_t word;
    std::memcpy(&word, &words[i / size * 4], 4);
    const uint64_t value = retype(word, dtype);
    std::memcpy(&out[i], &value, std::min({size, sizeof value, out.size() - i}));
  }
}

void tell_shape(uint8_t choice, Args* args) {
  args->shape = {};
  args->n_dims = choice % 4 == 0 ? 0 : choice % 4 + 1;
  const uint64_t inner[] = {1u + choice / 4 % 8, 1u + choice / 32 % 8, 3};
  uint64_t row = dtype_size(args->dtype == DType::kBytes ? DType::kFloat32 : args->dtype);
  for (size_t i = 1; i < static_cast<size_t>(args->n_dims); ++i)
    row *= args->shape[i] = inner[i - 1];
  if (args->n_dims != 0) args->shape[0] = (uint64_t{1} << 30) / row;
}

std::span<const Generator> generators() { return kGenerators; }

const Generator* find_generator(const char* name) {
  for (const Generator& generator : kGenerators)
    if (std::string_view(name) == generator.name) return &generator;
  return nullptr;
}

}  // namespace wirepress::conformance
