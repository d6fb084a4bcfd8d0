// SPDX-License-Identifier: Apache-2.0
// Test data made from seeds: the same bytes on every machine.
#pragma once

#include <span>

#include "base/kernel.hpp"

namespace wirepress::conformance {

// splitmix64 (Steele, Lea, Flood 2014): small, and any seed is a good one.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

struct Generator {
  const char* name;
  void (*fill)(Random& random, Bytes out);
};

// Generators make 32-bit words. As elements of another type: the same signs and classes (zero,
// denormal, normal, infinite, NaN) for floats, the same bits for the rest.
void fill_as(DType dtype, const Generator& generator, Random& random, Bytes out);

// Shapes to try codecs with that take one: 0 is none; else 2 to 4 dimensions with small inner
// extents, the outermost as large as any block.
void tell_shape(uint8_t choice, Args* args);

std::span<const Generator> generators();
const Generator* find_generator(const char* name);  // nullptr: unknown

}  // namespace wirepress::conformance
