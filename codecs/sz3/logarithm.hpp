// SPDX-License-Identifier: Apache-2.0
// Base 2 logarithm and power of float64, made of additions, multiplications and divisions only: the
// same bits on every machine, which a library's are not. The power is part of the format (spec.md).
#pragma once

#include <bit>
#include <cstdint>

namespace wirepress::sz3 {

constexpr double kLeastLog = -1022;  // below, and from kMostLog on, the power is 0
constexpr double kMostLog = 1023;

// ln(2)^i / i!
constexpr double kPowerTerms[] = {
    1.0,
    0.6931471805599453,
    0.24022650695910072,
    0.05550410866482158,
    0.009618129107628477,
    0.0013333558146428443,
    0.0001540353039338161,
    1.525273380405984e-05,
    1.3215486790144307e-06,
    1.0178086009239696e-07,
    7.054911620801121e-09,
    4.4455382718708104e-10,
    2.567843599348819e-11,
    1.369148885390412e-12,
};

// 2^v.
static inline double power_of_two(double v) {
  if (!(v >= kLeastLog && v < kMostLog)) return 0;
  const int64_t whole = static_cast<int64_t>(v + 1024.5) - 1024;  // to the nearest
  const double rest = v - static_cast<double>(whole);
  double sum = kPowerTerms[13];
  for (int i = 12; i >= 0; --i) sum = sum * rest + kPowerTerms[i];
  return sum * std::bit_cast<double>(static_cast<uint64_t>(whole + 1023) << 52);
}

// log2 of a normal number above 0. Only encoders need it.
static inline double log2_of(double x) {
  const uint64_t word = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(word >> 52) - 1023;
  double m = std::bit_cast<double>((word & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), ss = s * s;
  double sum = 0;
  for (int i = 21; i >= 1; i -= 2) sum = sum * ss + 1.0 / i;
  return static_cast<double>(exponent) + sum * s * 2.8853900817779268;  // 2 / ln(2)
}

}  // namespace wirepress::sz3
