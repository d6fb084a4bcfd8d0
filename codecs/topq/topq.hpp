// SPDX-License-Identifier: Apache-2.0
// What the kernels of topq share: the layout of a code, and the format of a chunk, for which an
// instruction set only looks for the largest values.
#pragma once

#include "base/device.hpp"
#include "codecs/common/chunked/float_chunks.hpp"

namespace wirepress::topq {

constexpr size_t kValues = 4096;  // of a chunk
constexpr size_t kLanes = 16;     // values side by side, and columns of a band
constexpr size_t kBand = 256;     // values, of which each column has every sixteenth
constexpr size_t kColumns = kValues / kBand * kLanes;

enum ParamIndex { kCount };

class Layout {
 public:
  explicit Layout(const Args& args) : count_(static_cast<size_t>(args.real(kCount))) {}
  static constexpr size_t values() { return kValues; }
  // Values that are sent of n.
  size_t sent(size_t n) const { return (count_ * n + kValues - 1) / kValues; }
  size_t code_size(size_t n) const;

 private:
  size_t count_;
};

// Magnitudes, which are words without their sign, and their places, in the order of the places.
struct Found {
  size_t count = 0;
  uint32_t magnitude[kValues + kLanes];
  uint32_t place[kValues + kLanes];
};

// ---- the same for all instruction sets (topq.cpp) ----

// The magnitude of rank k, the largest being 1, of n; changes their order.
uint32_t ranked(uint32_t* magnitudes, size_t n, size_t k);
// The code of the values `x` of a chunk: of `sent` of those found, which are the largest.
void write_code(const std::byte* x, size_t n, size_t sent, Found* found, std::byte* code);
void write_nan(size_t size, std::byte* code);
bool read_code(const std::byte* code, size_t size, size_t n, size_t sent, std::byte* x);

// Isa: a type with internal linkage, of
//   using Sums        PlainSums or VectorSums
//   static uint32_t find_maxima(const std::byte* x, size_t bands, uint32_t* maxima)
//     the largest magnitude of each column; returns the largest of all
//   static void collect(const std::byte* x, size_t padded, uint32_t least, Found* found)
//     all magnitudes from `least` on
template <typename Isa>
struct Format : Isa::Sums, Layout {
  static constexpr const char* kName = "topq";
  explicit Format(const Args& args) : Layout(args) {}

  // At least `sent` columns hold a value as large as the least of the `sent` largest maxima, so all
  // values to be sent are as large, and few others.
  void encode(const std::byte* x, size_t n, uint64_t, std::byte* code) const {
    constexpr size_t kRow = 128;  // values are padded with zeros to a multiple of it
    const size_t padded = (n + kRow - 1) / kRow * kRow, m = sent(n);
    uint32_t maxima[kColumns];
    const size_t columns = (padded + kBand - 1) / kBand * kLanes;
    if (Isa::find_maxima(x, padded, maxima) >= kFloatInfinity) return write_nan(code_size(n), code);
    Found found;
    Isa::collect(x, padded, m <= columns ? ranked(maxima, columns, m) : 0, &found);
    write_code(x, n, m, &found, code);
  }

  bool decode(const std::byte* code, size_t n, std::byte* x) const {
    return read_code(code, code_size(n), n, sent(n), x);
  }
};

}  // namespace wirepress::topq
