// SPDX-License-Identifier: Apache-2.0
// Base 2 logarithm and power of float64, made of additions, multiplications and divisions only: the
// same bits on every machine, which a library's are not. The power is part of the format (spec.md).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

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

// The last coefficient of all, then times x plus the one before it, and so on to the first.
template <size_t N, size_t... I>
static inline double polynomial(const double (&terms)[N], double x, std::index_sequence<I...>) {
  double sum = terms[N - 1];
  ((sum = sum * x + terms[N - 2 - I]), ...);
  return sum;
}
template <size_t N>
static inline double polynomial(const double (&terms)[N], double x) {
  return polynomial(terms, x, std::make_index_sequence<N - 1>());
}

// 2^v.
static inline double power_of_two(double v) {
  if (!(v >= kLeastLog && v < kMostLog)) return 0;
  const int64_t whole = static_cast<int64_t>(v + 1024.5) - 1024;  // the nearest
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(whole + 1023) << 52);
  return polynomial(kPowerTerms, v - static_cast<double>(whole)) * scale;
}

// log2 of a normal number above 0. Only encoders need it.
static inline double log2_of(double x) {
  // 2 / ln(2) / i for odd i: log2((1 + s) / (1 - s)) by powers of s.
  constexpr double k = 2.8853900817779268;
  static constexpr double kTerms[] = {k,      k / 3,  k / 5,  k / 7,  k / 9, k / 11,
                                      k / 13, k / 15, k / 17, k / 19, k / 21};
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD;
  const uint64_t word = std::bit_cast<uint64_t>(x);
  const int64_t exponent = static_cast<int64_t>(word - kRootOfHalf) >> 52;
  const double m = std::bit_cast<double>(word - (static_cast<uint64_t>(exponent) << 52));
  const double s = (m - 1) / (m + 1);
  return static_cast<double>(exponent) + polynomial(kTerms, s * s) * s;
}

}  // namespace wirepress::sz3
