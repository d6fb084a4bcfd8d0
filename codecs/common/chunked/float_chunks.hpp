// SPDX-License-Identifier: Apache-2.0
// Chunks (blocks.hpp) of formats that know nothing of error feedback: sums, and what a code has
// lost, a chunk at a time, in the first-level cache.
#pragma once

#include <bit>

#include "codecs/common/chunked/blocks.hpp"
#include "codecs/common/random.hpp"

namespace wirepress {
namespace {

constexpr uint32_t kFloatSign = 0x80000000;
constexpr uint32_t kFloatInfinity = 0x7F800000;

// Sums of float32 arrays of any alignment. FloatChunks takes them from the format, so that they are
// made with the kernel's instructions.
struct PlainSums {
  static float load(const std::byte* from, size_t i) {
    float x;
    std::memcpy(&x, from + 4 * i, sizeof(x));
    return x;
  }
  static void store(std::byte* to, size_t i, float x) { std::memcpy(to + 4 * i, &x, sizeof(x)); }
  static void add(const std::byte* a, const std::byte* b, size_t n, std::byte* sum) {
    for (size_t i = 0; i < n; ++i) store(sum, i, load(a, i) + load(b, i));
  }
  // What a code of t has lost; 0 where that is not finite.
  static float lost(float t, float decoded) {
    const float error = t - decoded;
    return (std::bit_cast<uint32_t>(error) & ~kFloatSign) < kFloatInfinity ? error : 0.0f;
  }
  static void keep_error(const std::byte* t, const std::byte* decoded, size_t n, std::byte* error) {
    for (size_t i = 0; i < n; ++i) store(error, i, lost(load(t, i), load(decoded, i)));
  }
};

// With one of codecs/common/simd.
template <typename V>
struct VectorSums {
  static void add(const std::byte* a, const std::byte* b, size_t n, std::byte* sum) {
    size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes)
      V::store_float(sum + 4 * i, V::add(V::load_float(a + 4 * i), V::load_float(b + 4 * i)));
    PlainSums::add(a + 4 * i, b + 4 * i, n - i, sum + 4 * i);
  }
  static void keep_error(const std::byte* t, const std::byte* decoded, size_t n, std::byte* error) {
    const auto infinity = V::set(kFloatInfinity);
    const auto sizes = V::set(~kFloatSign);
    size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const auto lost =
          V::as_bits(V::subtract(V::load_float(t + 4 * i), V::load_float(decoded + 4 * i)));
      V::store(error + 4 * i, V::if_above(infinity, V::both(lost, sizes), lost, V::set(0)));
    }
    PlainSums::keep_error(t + 4 * i, decoded + 4 * i, n - i, error + 4 * i);
  }
};

// random_bits() of elements index .. index + kLanes - 1.
template <typename V>
typename V::U random_vector(uint64_t seed, uint64_t index) {
  if (index >> 32 != (index + V::kLanes - 1) >> 32) [[unlikely]] {
    std::array<uint32_t, V::kLanes> bits;
    for (size_t i = 0; i < V::kLanes; ++i) bits[i] = random_bits(seed, index + i);
    return V::load(reinterpret_cast<const std::byte*>(bits.data()));
  }
  const DrawStart start = draw_start(seed, index);
  typename V::U h = V::add(V::set(start.sum), V::multiply(V::lanes(), V::set(kDrawStep)));
  h = V::differ(h, V::set(start.mask));
  h = V::multiply(V::differ(h, V::template right<16>(h)), V::set(kDrawMix1));
  h = V::multiply(V::differ(h, V::template right<15>(h)), V::set(kDrawMix2));
  return V::differ(h, V::template right<16>(h));
}

// A format is a struct, in an unnamed namespace, of
//   static constexpr const char* kName
//   explicit Format(const Args&)
//   size_t values() const             in a chunk: a multiple of kStep, to chunks::kMostValues
//   size_t code_size(size_t n) const  of a chunk of n values; at most 4 n + 64
//   void encode(const std::byte* x, size_t n, uint64_t index, std::byte* code) const
//   bool decode(const std::byte* code, size_t n, std::byte* x) const    false: no such code
//   add, keep_error                   of PlainSums or VectorSums
// where n may be smaller in the last chunk, and there is room for a multiple of kStep.
template <typename Format>
struct FloatChunk : Format {
  static constexpr size_t kStep = 128;
  static constexpr bool kAdds = true;
  using Format::Format;

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const chunks::Run& run,
              std::byte* code) const {
    const Format format = *this;  // a copy: no store of a byte can change it
    if constexpr (!kFeedback) {
      format.encode(src, run.n, run.first, code);
    } else {
      chunks::Buffer decoded;
      Format::add(src, residual, run.padded, residual);
      format.encode(residual, run.n, run.first, code);
      format.decode(code, run.n, decoded.data());
      Format::keep_error(residual, decoded.data(), run.n, residual);
    }
  }

  template <bool kAdd>
  bool decode(const std::byte* code, const chunks::Run& run, std::byte* dst) const {
    const Format format = *this;
    if constexpr (!kAdd) return format.decode(code, run.n, dst);
    chunks::Buffer decoded;
    if (!format.decode(code, run.n, decoded.data())) return false;
    Format::add(dst, decoded.data(), run.n, dst);
    return true;
  }
};

template <typename Format>
using FloatChunks = chunks::Functions<chunks::Blocks<FloatChunk<Format>>>;

}  // namespace
}  // namespace wirepress
