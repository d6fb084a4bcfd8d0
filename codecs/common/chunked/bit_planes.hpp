// SPDX-License-Identifier: Apache-2.0
// Gradient codes of fixed size: what the kernels of their codecs share.
//
// The code of a chunk of C::kValues values (blocks.hpp) is a head (scales) and then, for each group
// of 32 values, one 32-bit word per bit plane: bit i belongs to value i of the group. The last
// group is filled up with zeros.
//
// A codec's kernel is a class C with internal linkage, made from Args, that knows one chunk:
//
//   static constexpr const char* kName;
//   static constexpr size_t kValues, kHeadSize;      // kValues: a multiple of 32
//   static size_t planes(const Args&);
//   static size_t values(const Args&);               // where chunks can be smaller than kValues
//   template <bool kFeedback>                        // residual: nullptr without feedback
//   void encode(const std::byte* src, std::byte* residual, const Run&, std::byte* code) const;
//   template <bool kAdd>                             // false: no encoder wrote this
//   bool decode(const std::byte* code, size_t padded, std::byte* dst) const;
//
// It is given whole groups: values after the last are +0, and must get bits 0. With feedback it may
// keep t = src + residual in `residual` between its passes.
#pragma once

#include <bit>

#include "codecs/common/chunked/blocks.hpp"

namespace wirepress::chunks {

constexpr size_t kGroup = 32;  // values of one word of a plane
constexpr size_t kSums = 16;   // partial sums

constexpr uint32_t kInfinity = 0x7F800000;
constexpr uint32_t kNan = 0x7FC00000;  // the scale of a chunk with a value that is not finite
constexpr uint32_t kSign = 0x80000000;

template <typename T>
static inline T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
static inline void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

static constexpr uint32_t word_of(float x) { return std::bit_cast<uint32_t>(x); }
static constexpr float float_of(uint32_t word) { return std::bit_cast<float>(word); }
static constexpr bool finite(float x) { return (word_of(x) & kInfinity) != kInfinity; }

// Floats are summed in this order, so that all engines get the same bits: value i goes to partial
// sum i % 16, in order of i; then partial sums 8 apart are added, 4 apart, 2, 1.
using Sums = std::array<float, kSums>;
static inline float total(Sums sums) {
  for (size_t apart = kSums / 2; apart > 0; apart /= 2)
    for (size_t i = 0; i < apart; ++i) sums[i] = sums[i] + sums[i + apart];
  return sums[0];
}

// Value i of what is encoded; with feedback it is also left in `residual`.
template <bool kFeedback>
static inline float take(const std::byte* src, std::byte* residual, size_t i) {
  const float x = read<float>(src + 4 * i);
  if constexpr (!kFeedback) return x;
  const float t = x + read<float>(residual + 4 * i);
  write(residual + 4 * i, t);
  return t;
}

template <bool kAdd>
static inline void put(std::byte* dst, size_t i, float decoded) {
  write(dst + 4 * i, kAdd ? read<float>(dst + 4 * i) + decoded : decoded);
}

constexpr size_t padded(size_t n) { return (n + kGroup - 1) / kGroup * kGroup; }

// Sizes of codes; planes: words of a group.
struct PlaneLayout {
  size_t chunk_values, head_size, planes;
  constexpr size_t values() const { return chunk_values; }
  constexpr size_t code_size(size_t n) const { return head_size + padded(n) / kGroup * 4 * planes; }
};

// A chunk of C for Blocks.
template <typename C>
class Planes : public C {
 public:
  static constexpr size_t kStep = kGroup;
  static constexpr bool kAdds = false;
  explicit Planes(const Args& args)
      : C(args), layout_{values_of(args), C::kHeadSize, C::planes(args)} {}

  size_t values() const {
    if constexpr (kAnyValues) return layout_.values();
    return C::kValues;
  }
  size_t code_size(size_t n) const { return layout_.code_size(n); }

  template <bool kAdd>
  bool decode(const std::byte* code, const Run& run, std::byte* dst) const {
    return zeros_after(code + C::kHeadSize, run.n) &&
           C::template decode<kAdd>(code, run.padded, dst);
  }

 private:
  static constexpr bool kAnyValues = requires(const Args& args) { C::values(args); };
  static size_t values_of(const Args& args) {
    if constexpr (kAnyValues) return C::values(args);
    return C::kValues;
  }

  // Whether no plane has a bit for what fills the last group.
  bool zeros_after(const std::byte* groups, size_t n) const {
    const size_t used = n % kGroup;
    if (used == 0) return true;
    const std::byte* last = groups + n / kGroup * 4 * layout_.planes;
    uint32_t all = 0;
    for (size_t plane = 0; plane < layout_.planes; ++plane) all |= read<uint32_t>(last + 4 * plane);
    return all >> used == 0;
  }

  PlaneLayout layout_;
};

// The kernel that C makes.
template <typename C>
static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
  return Functions<Blocks<Planes<C>>>::kernel(variant, usable);
}

// A chunk with a value that is not finite: NaN in every scale, all bits 0, nothing left over.
static inline void write_nan(size_t n_scales, size_t code_size, std::byte* code) {
  std::memset(code, 0, code_size);
  for (size_t i = 0; i < n_scales; ++i) write(code + 4 * i, kNan);
}

static inline bool all_zero(const std::byte* bytes, size_t size) {
  uint32_t all = 0;
  for (size_t at = 0; at < size; at += 4) all |= read<uint32_t>(bytes + at);
  return all == 0;
}

}  // namespace wirepress::chunks
