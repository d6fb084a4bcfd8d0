// SPDX-License-Identifier: Apache-2.0
// shuffle on a GPU: a block brings a tile of elements to shared memory and takes it from there in
// the other order.
#pragma once

#include "base/kernel.hpp"
#include "codecs/shuffle/shuffle.hpp"
#include "engines/cuda/kernel.hpp"

namespace wirepress::shuffle {

template <bool kSplit>
struct Move {
  static constexpr unsigned kWarps = 4;
  static constexpr size_t kShared = 8192;
  static constexpr uint32_t kStep = 128;  // elements: a tile begins at a multiple of 16 bytes

  cuda::Task task;
  uint32_t size;  // of an element

  static constexpr uint32_t tile(uint32_t element) { return kShared / element / kStep * kStep; }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t n = task.raw_size / size, first = w.block() * tile(size);
    if (w.block() == 0 && w.warp() == 0) finish(w, n);
    if (first >= n) return;
    const uint64_t left = n - first;
    const uint32_t here = left < tile(size) ? static_cast<uint32_t>(left) : tile(size);
    if constexpr (kSplit) {
      load_rows(w, task.raw + first * size, here * size);
      w.sync();
      for (uint32_t j = 0; j < size; ++j) move_plane(w, task.code + j * n + first, j, here);
    } else {
      for (uint32_t j = 0; j < size; ++j) move_plane(w, task.code + j * n + first, j, here);
      w.sync();
      store_rows(w, task.raw + first * size, here * size);
    }
  }

 private:
  // The bytes behind the last element, and the sizes.
  template <class W>
  WPR_ON_DEVICE void finish(W& w, uint64_t n) const {
    const cuda::Task own = task;
    const uint64_t whole = n * size;
    for (uint64_t i = whole; i < own.raw_size; i += cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane >= own.raw_size) return;
            if (kSplit) own.code[i + lane] = own.raw[i + lane];
            if (!kSplit) own.raw[i + lane] = own.code[i + lane];
          },
          w.lane());
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) own.report->written = own.raw_size;
        },
        w.lane());
  }

  template <class W>
  WPR_ON_DEVICE void load_rows(W& w, const std::byte* from, uint32_t bytes) const {
    std::byte* const rows = w.shared();
    const uint32_t words = bytes / 4;
    for (uint32_t i = 128 * w.warp(); i < words; i += 128 * kWarps)
      w.put_quads(rows + 4 * i, words - i, w.quads(from + 4 * i, words - i));
    last_bytes(w, from, rows, bytes);
  }
  template <class W>
  WPR_ON_DEVICE void store_rows(W& w, std::byte* to, uint32_t bytes) const {
    const std::byte* const rows = w.shared();
    const uint32_t words = bytes / 4;
    for (uint32_t i = 128 * w.warp(); i < words; i += 128 * kWarps)
      w.put_quads(to + 4 * i, words - i, w.quads(rows + 4 * i, words - i));
    last_bytes(w, rows, to, bytes);
  }
  template <class W>
  static WPR_ON_DEVICE void last_bytes(W& w, const std::byte* from, std::byte* to, uint32_t bytes) {
    const uint32_t begin = bytes & ~3u;
    if (w.warp() == 0)
      w.each(
          [=](uint32_t lane) {
            if (begin + lane < bytes) to[begin + lane] = from[begin + lane];
          },
          w.lane());
  }

  // Byte j of all elements, between shared memory and its plane: four neighbours a lane, as one
  // word where the plane lies so.
  template <class W>
  WPR_ON_DEVICE void move_plane(W& w, std::byte* plane, uint32_t j, uint32_t here) const {
    std::byte* const rows = w.shared() + j;
    const bool whole = reinterpret_cast<uintptr_t>(plane) % 4 == 0;
    const uint32_t step = size;
    for (uint32_t i = 128 * w.warp(); i < here; i += 128 * kWarps)
      w.each(
          [=](uint32_t lane) {
            const uint32_t at = i + 4 * lane;
            if (at >= here) return;
            const uint32_t n = here - at < 4 ? here - at : 4;
            if constexpr (kSplit) {
              uint32_t word = 0;
              for (uint32_t k = 0; k < n; ++k)
                word |= static_cast<uint32_t>(rows[(at + k) * step]) << 8 * k;
              if (whole && n == 4) return cuda::put(plane + at, word);
              for (uint32_t k = 0; k < n; ++k)
                plane[at + k] = static_cast<std::byte>(word >> 8 * k);
            } else {
              const bool at_once = whole && n == 4;
              const uint32_t word = at_once ? cuda::get<uint32_t>(plane + at) : 0;
              for (uint32_t k = 0; k < n; ++k)
                rows[(at + k) * step] =
                    at_once ? static_cast<std::byte>(word >> 8 * k) : plane[at + k];
            }
          },
          w.lane());
  }
};

// For cuda::KernelOf.
struct Warps {
  static constexpr const char* kName = "shuffle";
  static constexpr bool kGradients = false;
  static constexpr bool kKeepsSize = true;

  static Status check_encode(const Args&, size_t size, size_t room) {
    if (size <= room) return {};
    return fail(Code::kDstTooSmall, "shuffle: needs %zu bytes, has %zu", size, room);
  }
  static Status check_decode(const Args& args, size_t size, size_t raw_size) {
    return check_encode(args, size, raw_size);
  }
  static size_t scratch(const Args&, size_t) { return 0; }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    return launch<true>(device, args, task);
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    return launch<false>(device, args, task);
  }

 private:
  template <bool kSplit, class D>
  static Status launch(D& device, const Args& args, const cuda::Task& task) {
    const uint32_t size = static_cast<uint32_t>(args.value[0]);
    if (size == 0) return fail(Code::kParameter, "shuffle: element size 0 was not resolved");
    const uint64_t n = task.raw_size / size, tile = Move<kSplit>::tile(size);
    return device.launch(Move<kSplit>{task, size}, std::max<uint64_t>(1, (n + tile - 1) / tile));
  }
};

}  // namespace wirepress::shuffle
