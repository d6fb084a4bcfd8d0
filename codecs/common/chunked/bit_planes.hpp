// SPDX-License-Identifier: Apache-2.0
// Gradient codes of fixed size: what the kernels of their codecs share.
//
// A block of N bytes is floor(N / 4) float32 values and the last N % 4 bytes. Values go in chunks
// of C::kValues, the last one shorter. The code of a chunk is a head (scales) and then, for each
// group of 32 values, one 32-bit word per bit plane: bit i belongs to value i of the group. The
// last group is filled up with zeros. After the last chunk, the last bytes as they are.
//
// A codec's kernel is a class C, made from Args, that knows one chunk:
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
//
// C must have internal linkage, and what is here is `static` or a template over C: kernels are
// compiled for different instruction sets, and the linker must not mix them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::chunks {

constexpr size_t kGroup = 32;  // values of one word of a plane
constexpr size_t kSums = 16;   // partial sums

constexpr uint32_t kInfinity = 0x7F800000;
constexpr uint32_t kNan = 0x7FC00000;  // the scale of a chunk with a value that is not finite
constexpr uint32_t kSign = 0x80000000;

struct Run {
  size_t n;        // values of this chunk
  size_t padded;   // with those that fill the last group
  uint64_t first;  // index of the first one, for what is drawn
};

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

static inline uint32_t word_of(float x) { return std::bit_cast<uint32_t>(x); }
static inline float float_of(uint32_t word) { return std::bit_cast<float>(word); }
static inline bool finite(float x) { return (word_of(x) & kInfinity) != kInfinity; }

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

// Sizes of the code of `raw_size` bytes.
struct Layout {
  Layout(size_t raw_size, size_t chunk_values, size_t head_size, size_t planes)
      : values(raw_size / 4),
        tail(raw_size % 4),
        n_chunks((values + chunk_values - 1) / chunk_values),
        group_size(4 * planes),
        chunk_size(head_size + chunk_values / kGroup * group_size),
        size(n_chunks * head_size + padded(values) / kGroup * group_size + tail) {}
  size_t values;
  size_t tail;
  size_t n_chunks;
  size_t group_size;
  size_t chunk_size;  // of all chunks but the last
  size_t size;
};

// Values of a chunk of C.
template <typename C>
static inline size_t values(const Args& args) {
  if constexpr (requires { C::values(args); }) return C::values(args);
  return C::kValues;
}

template <typename C>
class Blocks {
 public:
  static Status encode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return encode_block<false>(args, src, nullptr, dst, written);
  }

  static Status encode_feedback(void*, const Args& args, ConstBytes src, Bytes residual, Bytes dst,
                                size_t* written) noexcept {
    if (residual.size() != src.size())
      return fail(Code::kParameter, "%s: residual of %zu bytes for %zu", C::kName, residual.size(),
                  src.size());
    WPR_TRY(encode_block<true>(args, src, residual.data(), dst, written));
    const size_t tail = src.size() % 4;
    std::fill(residual.end() - static_cast<ptrdiff_t>(tail), residual.end(), std::byte{0});
    return {};
  }

  static Status decode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    WPR_TRY(decode_block<false>(args, src, dst));
    const size_t tail = dst.size() % 4;
    std::copy(src.end() - static_cast<ptrdiff_t>(tail), src.end(),
              dst.end() - static_cast<ptrdiff_t>(tail));
    *written = dst.size();
    return {};
  }

  static Status decode_add(void*, const Args& args, ConstBytes src, Bytes dst) noexcept {
    return decode_block<true>(args, src, dst);
  }

 private:
  struct alignas(64) Scratch : std::array<std::byte, 4 * C::kValues> {};

  static Layout layout_of(const Args& args, size_t raw_size) {
    return {raw_size, values<C>(args), C::kHeadSize, C::planes(args)};
  }

  template <bool kFeedback>
  static Status encode_block(const Args& args, ConstBytes src, std::byte* residual, Bytes dst,
                             size_t* written) {
    const Layout layout = layout_of(args, src.size());
    if (layout.size > dst.size())
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes needs %zu, has %zu", C::kName,
                  src.size(), layout.size, dst.size());
    const C chunk(args);
    const std::byte* from = src.data();
    std::byte* code = dst.data();
    const size_t n = values<C>(args);
    size_t done = 0;
    for (; done + n <= layout.values; done += n) {
      chunk.template encode<kFeedback>(from, residual, {n, n, args.first + done}, code);
      from += 4 * n;
      if constexpr (kFeedback) residual += 4 * n;
      code += layout.chunk_size;
    }
    if (done < layout.values)
      encode_last<kFeedback>(chunk, from, residual, layout.values - done, args.first + done, code);
    if (layout.tail > 0)
      std::memcpy(dst.data() + layout.size - layout.tail, src.data() + 4 * layout.values,
                  layout.tail);
    *written = layout.size;
    return {};
  }

  // The chunk that is not full: from copies with zeros behind.
  template <bool kFeedback>
  static void encode_last(const C& chunk, const std::byte* src, std::byte* residual, size_t n,
                          uint64_t first, std::byte* code) {
    Scratch values, rest;
    const size_t filled = padded(n);
    std::memset(values.data() + 4 * n, 0, 4 * (filled - n));
    std::memcpy(values.data(), src, 4 * n);
    if constexpr (kFeedback) {
      std::memset(rest.data() + 4 * n, 0, 4 * (filled - n));
      std::memcpy(rest.data(), residual, 4 * n);
    }
    chunk.template encode<kFeedback>(values.data(), kFeedback ? rest.data() : nullptr,
                                     {n, filled, first}, code);
    if constexpr (kFeedback) std::memcpy(residual, rest.data(), 4 * n);
  }

  template <bool kAdd>
  static Status decode_block(const Args& args, ConstBytes src, Bytes dst) {
    const Layout layout = layout_of(args, dst.size());
    if (layout.size != src.size())
      return fail(Code::kCorrupt, "%s: %zu bytes are the code of %zu, have %zu", C::kName,
                  layout.size, dst.size(), src.size());
    const C chunk(args);
    const std::byte* code = src.data();
    std::byte* to = dst.data();
    const size_t n = values<C>(args);
    size_t done = 0;
    for (; done + n <= layout.values; done += n) {
      if (!chunk.template decode<kAdd>(code, n, to)) return invalid(layout, done / n, code);
      code += layout.chunk_size;
      to += 4 * n;
    }
    if (done == layout.values) return {};
    const size_t rest = layout.values - done;
    if (!zeros_after(code + C::kHeadSize, layout, rest) ||
        !decode_last<kAdd>(chunk, code, rest, to))
      return invalid(layout, done / n, code);
    return {};
  }

  template <bool kAdd>
  static bool decode_last(const C& chunk, const std::byte* code, size_t n, std::byte* dst) {
    Scratch values;
    if constexpr (kAdd) {
      std::memset(values.data() + 4 * n, 0, 4 * (padded(n) - n));
      std::memcpy(values.data(), dst, 4 * n);
    }
    const bool good = chunk.template decode<kAdd>(code, padded(n), values.data());
    if (good) std::memcpy(dst, values.data(), 4 * n);
    return good;
  }

  // Whether no plane has a bit for what fills the last group.
  static bool zeros_after(const std::byte* groups, const Layout& layout, size_t n) {
    const size_t used = n % kGroup;
    if (used == 0) return true;
    const std::byte* last = groups + n / kGroup * layout.group_size;
    uint32_t all = 0;
    for (size_t at = 0; at < layout.group_size; at += 4) all |= read<uint32_t>(last + at);
    return all >> used == 0;
  }

  static Status invalid(const Layout& layout, size_t number, const std::byte* code) {
    return fail(Code::kCorrupt,
                "%s: chunk %zu of %zu (scale 0x%08x): a scale or bits that no encoder writes",
                C::kName, number, layout.n_chunks, read<uint32_t>(code));
  }
};

// The kernel that C makes.
template <typename C>
static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
  return {
      .engine = "cpu",
      .variant = variant,
      .usable = usable,
      .open = nullptr,
      .close = nullptr,
      .encode = Blocks<C>::encode,
      .decode = Blocks<C>::decode,
      .encode_feedback = Blocks<C>::encode_feedback,
      .decode_add = Blocks<C>::decode_add,
  };
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
