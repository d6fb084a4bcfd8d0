// SPDX-License-Identifier: Apache-2.0
// A kernel of all blocks of a frame (base/stream_plan.hpp). Each block has its own values of the
// kernel, and of the launch's blocks of warps as many as it would have alone.
#pragma once

#include <type_traits>

#include "base/stream_plan.hpp"
#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

// A warp whose blocks are counted from one of them on.
template <class W>
class WarpOfBlock : public W {
 public:
  WPR_ON_DEVICE WarpOfBlock(const W& w, uint64_t block, uint64_t blocks)
      : W(w), block_(block), blocks_(blocks) {}
  WPR_ON_DEVICE uint64_t block() const { return block_; }
  WPR_ON_DEVICE uint64_t blocks() const { return blocks_; }

 private:
  uint64_t block_, blocks_;
};

template <class K, class = void>
struct LeastBlocks {};
template <class K>
struct LeastBlocks<K, std::void_t<decltype(K::kLeastBlocks)>> {
  static constexpr unsigned kLeastBlocks = K::kLeastBlocks;
};

template <class K>
struct OfAllBlocks : LeastBlocks<K> {
  static constexpr unsigned kWarps = K::kWarps;
  static constexpr size_t kShared = shared_by<K>();
  struct alignas(16) Entry {
    uint64_t blocks;
    K kernel;
  };
  static_assert(std::is_trivially_copyable_v<K>, "a table is copied as bytes");

  const Entry* entries;
  uint32_t most;

  OfAllBlocks(const Entry* table, uint32_t most_blocks) : entries(table), most(most_blocks) {}

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint32_t number = static_cast<uint32_t>(w.block()), block = number % most;
    const Entry& entry = entries[number / most];
    if (block >= entry.blocks) return;
    WarpOfBlock<W> own(w, block, entry.blocks);
    entry.kernel(own);
  }
};

// Zeros, at an address that is aligned to 4.
struct Clear {
  static constexpr unsigned kWarps = 1;
  static constexpr uint64_t kEach = 4096;  // bytes of a warp
  std::byte* at;
  uint64_t size;
  static constexpr uint64_t blocks(uint64_t size) { return (size + kEach - 1) / kEach; }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t first = w.block() * kEach, end = first + kEach < size ? first + kEach : size;
    for (uint64_t row = first; row < end; row += 4 * kLanes)
      w.each(
          [=, this](uint32_t lane) {
            const uint64_t i = row + 4 * lane;
            if (i + 4 <= end)
              put(at + i, uint32_t{0});
            else
              for (uint64_t k = i; k < end; ++k) at[k] = std::byte{0};
          },
          w.lane());
  }
};

// Notes what a codec launches, for a Queue(device, stream) to launch it.
template <class Queue>
class Planner {
 public:
  explicit Planner(StreamPlan* plan) : plan_(plan) {}

  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    typename OfAllBlocks<K>::Entry entry = {blocks, kernel};
    return plan_->note(launch_all<K>, &entry, sizeof(entry), blocks);
  }
  Status clear(std::byte* at, uint64_t size) noexcept {
    return size == 0 ? Status() : launch(Clear{at, size}, Clear::blocks(size));
  }

 private:
  template <class K>
  static Status launch_all(int device, void* stream, const std::byte* table, size_t n,
                           uint64_t most) noexcept {
    using All = OfAllBlocks<K>;
    Queue queue(device, stream);
    const typename Queue::Bound bound(queue);
    const std::byte* const there = queue.reach(table, n * sizeof(typename All::Entry));
    if (there == nullptr)
      return fail(Code::kDevice, "cuda: a table in no memory of the stream's device");
    if (most > UINT32_MAX / n)
      return fail(Code::kUnsupported, "cuda: %llu blocks of %zu launches, %lu are the most",
                  static_cast<unsigned long long>(most), n, static_cast<unsigned long>(UINT32_MAX));
    return queue.launch(
        All(reinterpret_cast<const typename All::Entry*>(there), static_cast<uint32_t>(most)),
        n * most);
  }

  StreamPlan* plan_;
};

}  // namespace wirepress::cuda
