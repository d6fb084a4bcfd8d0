// SPDX-License-Identifier: Apache-2.0
// A frame of blocks whose codes lie in memory of a device, put together there (base/streams.hpp):
// checksums, then places, then the bytes. Sizes are known to the device alone until somebody asks.
#pragma once

#include <algorithm>

#include "engines/cuda/all_blocks.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/xxh3.hpp"

namespace wirepress::cuda {

namespace sealing {

constexpr uint32_t kRaw = 1u << 31;  // of a block word (spec/frame.md)

constexpr uint64_t raw_size(const Sealing& task, uint64_t i) {
  const uint64_t left = task.raw_size - i * task.block_size;
  return left < task.block_size ? left : task.block_size;
}
constexpr uint64_t head_size(const Sealing& task) { return task.checksum != 0 ? 8 : 4; }
// Where what block i stores lies.
WPR_ON_DEVICE const std::byte* payload(const Sealing& task, uint64_t i, uint32_t word) {
  return (word & kRaw) != 0 ? task.raw + i * task.block_size : task.codes + i * task.slot;
}

// A block of warps says of a block of the frame what it stores, and hashes it.
struct Judge {
  static constexpr unsigned kWarps = 8;
  static constexpr size_t kShared = Xxh3::kShared(kWarps);
  Sealing task;
  Xxh3 hash;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t i = w.block(), size = raw_size(task, i);
    const Report report = task.reports[i];
    const bool raw = report.full != 0 || report.written == 0, noise = report.full == Report::kNoise;
    const bool elsewhere = report.elsewhere != 0 || report.first_bad != Report::kNone ||
                           (!raw && report.written > size);
    const uint32_t word = raw ? static_cast<uint32_t>(size) | kRaw
                              : static_cast<uint32_t>(elsewhere ? 0 : report.written);
    uint32_t checksum = 0;
    if (task.checksum != 0 && !elsewhere)
      checksum = hash.low_half<kWarps>(w, payload(task, i, word), word & ~kRaw,
                                       i + (uint64_t{word} << 32));
    if (w.warp() != 0) return;
    SealedBlock* const to = task.blocks + i;
    Sealed* const result = task.result;
    w.each(
        [=](uint32_t lane) {
          if (lane != 0) return;
          *to = {0, word, checksum};
          if (elsewhere) W::set_bits(reinterpret_cast<std::byte*>(&result->elsewhere), 1);
          if (raw) W::add_to(reinterpret_cast<std::byte*>(&result->n_raw), 1);
          if (noise) W::add_to(reinterpret_cast<std::byte*>(&result->n_noise), 1);
        },
        w.lane());
  }
};

// One warp says where each block of the frame begins.
struct Line {
  static constexpr unsigned kWarps = 1;
  Sealing task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t n = task.n_blocks, head = head_size(task), cap = task.cap;
    SealedBlock* const blocks = task.blocks;
    Sealed* const result = task.result;
    uint64_t at = task.header_size;
    for (uint64_t i = 0; i < n; i += kLanes) {
      const auto size = w.map(
          [=](uint32_t lane) {
            return i + lane < n ? head + (blocks[i + lane].word & ~kRaw) : uint64_t{0};
          },
          w.lane());
      auto sum = size;
      for (unsigned apart = 1; apart < kLanes; apart *= 2)
        sum = w.map([=](uint64_t a, uint64_t b, uint32_t lane) { return lane < apart ? a : a + b; },
                    sum, w.up(sum, apart), w.lane());
      w.each(
          [=](uint64_t to, uint64_t own, uint32_t lane) {
            if (i + lane < n) blocks[i + lane].place = at + to - own;
          },
          sum, size, w.lane());
      at += w.from(sum, kLanes - 1);
    }
    w.each(
        [=](uint32_t lane) {
          if (lane != 0) return;
          result->size = at;
          result->full = at > cap;
        },
        w.lane());
  }
};

// Blocks of warps copy parts of the frame's blocks to where they belong.
struct Move {
  static constexpr unsigned kWarps = 4;
  static constexpr uint64_t kPart = 4096;  // of a warp
  Sealing task;
  uint32_t parts;  // of a block, for kWarps warps each

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (task.result->full != 0 || task.result->elsewhere != 0) return;
    const auto number = static_cast<uint32_t>(w.block());  // of 2^31 at most
    const uint64_t i = number / parts, part = uint64_t{number % parts} * kWarps + w.warp();
    if (w.block() == 0 && w.warp() == 0) copy_any(w, task.header, task.dst, task.header_size);
    if (i >= task.n_blocks) return;
    const SealedBlock block = task.blocks[i];
    const uint64_t size = block.word & ~kRaw, begin = part * kPart, head = head_size(task);
    std::byte* const to = task.dst + block.place;
    if (part == 0)
      w.each(
          [=](uint32_t lane) {
            const uint64_t both = block.word | uint64_t{block.checksum} << 32;
            if (lane < head) to[lane] = static_cast<std::byte>(both >> (8 * lane));
          },
          w.lane());
    if (begin >= size) return;
    copy_any(w, payload(task, i, block.word) + begin, to + head + begin,
             size - begin < kPart ? size - begin : kPart);
  }
};

}  // namespace sealing

// For DeviceStreams::seal, of memory that the stream's device reaches.
template <class Queue>
Status note_seal(const Sealing& task, StreamPlan* plan) noexcept {
  using sealing::Move;
  Planner<Queue> planner(plan);
  if (task.n_blocks > 0) WPR_TRY(planner.launch(sealing::Judge{task, {}}, task.n_blocks));
  WPR_TRY(planner.launch(sealing::Line{task}, 1));
  const uint64_t each = Move::kWarps * Move::kPart, most = std::min(task.block_size, task.raw_size);
  const uint64_t parts = std::max<uint64_t>(1, (most + each - 1) / each);
  return planner.launch(Move{task, static_cast<uint32_t>(parts)},
                        std::max<uint64_t>(1, task.n_blocks * parts));
}

}  // namespace wirepress::cuda
