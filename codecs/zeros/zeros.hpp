// SPDX-License-Identifier: Apache-2.0
// What the kernels of zeros share: the walk over a block, 64 lines at a time. In an unnamed
// namespace, because each kernel compiles it for its instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kGroup = 64;  // lines, and bits of a word of the bitmap

// Ops has, for a whole group of lines,
//   static uint64_t lines(const std::byte* src)     bit i: line i is not all zero
//   static bool spread(uint64_t mask, const std::byte* from, std::byte* dst)
//                                     puts popcount(mask) lines where its bits are, zeros
//                                     elsewhere; false: one of them is all zero
template <typename Ops>
class Zeros {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = nullptr,
            .close = nullptr,
            .encode = encode,
            .decode = decode};
  }

 private:
  static size_t lines_of(size_t size) { return (size + kLine - 1) / kLine; }
  static bool is_zero(const std::byte* line, size_t size) {
    return std::all_of(line, line + size, [](std::byte b) { return b == std::byte{0}; });
  }
  // Bytes that the lines of `mask` have, of a group that begins `left` bytes before the end.
  static size_t lines_size(uint64_t mask, size_t left) {
    size_t size = static_cast<size_t>(std::popcount(mask)) * kLine;
    const size_t last = left / kLine;
    if (last < kGroup && mask >> last & 1) size -= kLine - left % kLine;
    return size;
  }

  static uint64_t mask_of(const std::byte* src, size_t left) {
    if (left >= kGroup * kLine) return Ops::lines(src);
    uint64_t mask = 0;
    for (size_t i = 0; i * kLine < left; ++i) {
      const size_t size = std::min(kLine, left - i * kLine);
      if (!is_zero(src + i * kLine, size)) mask |= uint64_t{1} << i;
    }
    return mask;
  }

  static Status encode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
    const auto full = [&] {
      return fail(Code::kDstTooSmall, "zeros: the code of %zu bytes does not fit %zu", src.size(),
                  dst.size());
    };
    const size_t bitmap_size = (lines_of(src.size()) + 7) / 8;
    if (bitmap_size > dst.size()) return full();
    size_t position = bitmap_size;
    for (size_t at = 0, group = 0; at < src.size(); at += kGroup * kLine, ++group) {
      const std::byte* const from = src.data() + at;
      const size_t left = src.size() - at;
      const uint64_t mask = mask_of(from, left);
      std::memcpy(dst.data() + 8 * group, &mask, std::min<size_t>(8, bitmap_size - 8 * group));
      const size_t size = lines_size(mask, left);
      if (size > dst.size() - position) return full();
      copy_lines(mask, from, left, dst.data() + position);
      position += size;
    }
    *written = position;
    return {};
  }

  // Run by run.
  static void copy_lines(uint64_t mask, const std::byte* from, size_t left, std::byte* to) {
    while (mask != 0) {
      const int first = std::countr_zero(mask);
      const int n = std::countr_one(mask >> first);
      const size_t begin = static_cast<size_t>(first) * kLine;
      const size_t size = std::min(static_cast<size_t>(n) * kLine, left - begin);
      std::memcpy(to, from + begin, size);
      to += size;
      if (first + n == kGroup) return;
      mask &= ~uint64_t{0} << (first + n);
    }
  }

  static Status decode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
    const size_t n_lines = lines_of(dst.size());
    const size_t bitmap_size = (n_lines + 7) / 8;
    if (src.size() < bitmap_size)
      return fail(Code::kCorrupt, "zeros: %zu bytes, the bitmap of %zu lines has %zu", src.size(),
                  n_lines, bitmap_size);
    size_t position = bitmap_size;
    for (size_t at = 0, group = 0; at < dst.size(); at += kGroup * kLine, ++group) {
      uint64_t mask = 0;
      std::memcpy(&mask, src.data() + 8 * group, std::min<size_t>(8, bitmap_size - 8 * group));
      const size_t left = dst.size() - at;
      const size_t lines = lines_of(left);
      if (lines < kGroup && mask >> lines != 0)
        return fail(Code::kCorrupt, "zeros: bits beyond %zu lines", n_lines);
      const size_t size = lines_size(mask, left);
      if (size > src.size() - position)
        return fail(Code::kCorrupt, "zeros: ends at byte %zu of %zu", src.size(), position + size);
      const std::byte* const from = src.data() + position;
      const bool good = left >= kGroup * kLine ? Ops::spread(mask, from, dst.data() + at)
                                               : spread_last(mask, from, dst.subspan(at));
      if (!good)
        return fail(Code::kCorrupt, "zeros: lines %zu to %zu: one that is kept is zero",
                    group * kGroup, group * kGroup + lines);
      position += size;
    }
    if (position != src.size())
      return fail(Code::kCorrupt, "zeros: %zu bytes, its lines end at %zu", src.size(), position);
    *written = dst.size();
    return {};
  }

  static bool spread_last(uint64_t mask, const std::byte* from, Bytes dst) {
    for (size_t i = 0; i * kLine < dst.size(); ++i) {
      const Bytes line = dst.subspan(i * kLine, std::min(kLine, dst.size() - i * kLine));
      if (mask >> i & 1) {
        if (is_zero(from, line.size())) return false;
        std::memcpy(line.data(), from, line.size());
        from += line.size();
      } else {
        std::memset(line.data(), 0, line.size());
      }
    }
    return true;
  }
};

// Ops by line_is_zero(line) of Line.
template <typename Line>
struct LineOps {
  static uint64_t lines(const std::byte* src) {
    uint64_t mask = 0;
    for (size_t i = 0; i < kGroup; ++i) mask |= uint64_t{!Line::is_zero(src + i * kLine)} << i;
    return mask;
  }
  static bool spread(uint64_t mask, const std::byte* from, std::byte* dst) {
    bool good = true;
    for (size_t i = 0; i < kGroup; ++i, dst += kLine) {
      if (mask >> i & 1) {
        good &= !Line::is_zero(from);
        std::memcpy(dst, from, kLine);
        from += kLine;
      } else {
        std::memset(dst, 0, kLine);
      }
    }
    return good;
  }
};

}  // namespace
}  // namespace wirepress
