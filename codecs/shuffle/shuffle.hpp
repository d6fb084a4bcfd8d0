// SPDX-License-Identifier: Apache-2.0
// What the kernels of shuffle share: cutting a block in elements and tail, and the portable loops.
// All of it is `static`: kernels are compiled for different instruction sets, and the linker must
// not hand one kernel another's copy.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::shuffle {

// The bytes of `n` elements of `size` bytes between element order (`rows`) and plane order: byte j
// of element i stands at planes[j * n + i].
//
// Elements go in blocks that stay in the first-level cache while each of their bytes is visited.
constexpr size_t kBlock = 512;

template <size_t kSize>
static inline void split_range(const std::byte* rows, std::byte* planes, size_t n, size_t size,
                               size_t begin, size_t end) {
  const size_t step = kSize != 0 ? kSize : size;
  for (size_t first = begin; first < end; first += kBlock) {
    const size_t last = std::min(end, first + kBlock);
    for (size_t j = 0; j < step; ++j) {
      std::byte* plane = planes + j * n;
      for (size_t i = first; i < last; ++i) plane[i] = rows[i * step + j];
    }
  }
}

template <size_t kSize>
static inline void join_range(const std::byte* planes, std::byte* rows, size_t n, size_t size,
                              size_t begin, size_t end) {
  const size_t step = kSize != 0 ? kSize : size;
  for (size_t first = begin; first < end; first += kBlock) {
    const size_t last = std::min(end, first + kBlock);
    for (size_t j = 0; j < step; ++j) {
      const std::byte* plane = planes + j * n;
      for (size_t i = first; i < last; ++i) rows[i * step + j] = plane[i];
    }
  }
}

using Function = void (*)(const std::byte* src, std::byte* dst, size_t n, size_t size);

// The frame around either direction: checks room, moves the elements, copies the tail.
static inline Status run(const Args& args, ConstBytes src, Bytes dst, size_t* written,
                         Function move) {
  if (src.size() > dst.size())
    return fail(Code::kDstTooSmall, "shuffle: needs %zu bytes, has %zu", src.size(), dst.size());
  const size_t size = static_cast<size_t>(args.value[0]);
  if (size == 0) return fail(Code::kParameter, "shuffle: element size 0 was not resolved");
  const size_t n = src.size() / size;
  const size_t whole = n * size;
  if (size == 1) {
    if (n > 0) std::memcpy(dst.data(), src.data(), n);
  } else if (n > 0) {
    move(src.data(), dst.data(), n, size);
  }
  if (whole < src.size()) std::memcpy(dst.data() + whole, src.data() + whole, src.size() - whole);
  *written = src.size();
  return {};
}

}  // namespace wirepress::shuffle
