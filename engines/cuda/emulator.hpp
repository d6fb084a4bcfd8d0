// SPDX-License-Identifier: Apache-2.0
// A GPU that is not there, for tests: runs kernels (warp.hpp) on the calling thread. Its memory is
// the host's, cut to the byte for the address sanitizer. Blocks go in order; with a seed, several
// are on their way, and which warp goes on where one waits is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "base/kernel.hpp"
#include "engines/cuda/emulated_memory.hpp"
#include "engines/cuda/host_warp.hpp"

namespace wirepress::cuda {

// Runs body(block, warp) for all warps, each as a fibre with a stack of its own.
class Fibres : public Schedule {
 public:
  Fibres();
  ~Fibres() override;
  Fibres(const Fibres&) = delete;
  Fibres& operator=(const Fibres&) = delete;

  // `resident` blocks are on their way at once, begun in order; seed 0: one after the other. False:
  // all that were begun wait for something that cannot come.
  using Body = std::function<void(uint64_t block, unsigned slot, unsigned warp)>;
  bool run(uint64_t blocks, unsigned warps, unsigned resident, uint64_t seed, const Body& body);

  void sync() override;
  void wait() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class EmulatedQueue;

class Emulator {
 public:
  static constexpr unsigned kResident = 3;

  // skip: the barrier that no warp waits at, counted from 1 in each launch, so that tests see that
  // they would find it missing; 0: none.
  explicit Emulator(uint64_t seed = 0, unsigned skip = 0) : seed_(seed), skip_(skip) {}

  using Queue = EmulatedQueue;  // emulated_stream.hpp: the same on a caller's stream

  struct Bound {
    explicit Bound(const Emulator&) {}
  };

  static int current() noexcept { return emulated_current(); }

  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    WPR_TRY(emulated_operation("a launch"));
    count_emulated_launch(device_);
    try {
      return run(kernel, blocks);
    } catch (const std::bad_alloc&) {
      return fail(Code::kNoMemory, "cuda: no memory to emulate %u warps", K::kWarps);
    }
  }

  // Memory of a device: aligned to 256, not cleared.
  class Memory {
   public:
    std::byte* get() const { return data_.get(); }
    Status prepare(size_t size) noexcept;
    ~Memory();
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

   private:
    struct Free {
      void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{256}); }
    };
    void forbid(size_t from, size_t to);
    std::unique_ptr<std::byte[], Free> data_;
    size_t room_ = 0;
  };

  // On an emulated device, whose memory it then reaches (emulated_memory.hpp).
  Status open(int device = -1) noexcept {
    device_ = device;
    return {};
  }
  std::byte* reach(const void* at, size_t size) const noexcept {
    int device = -1;
    std::byte* const bytes = emulated_bytes(at, size, &device);
    return device == device_ ? bytes : nullptr;
  }
  // The caller's bytes may lie in memory of this device, too.
  Status upload(std::byte* to, ConstBytes from) noexcept {
    WPR_TRY(emulated_operation("an upload"));
    const std::byte* const there = reach(from.data(), from.size());
    if (!from.empty()) std::memcpy(to, there != nullptr ? there : from.data(), from.size());
    return {};
  }
  Status download(Bytes to, const std::byte* from) noexcept {
    WPR_TRY(emulated_operation("a download"));
    std::byte* const there = reach(to.data(), to.size());
    if (!to.empty()) std::memcpy(there != nullptr ? there : to.data(), from, to.size());
    return {};
  }
  Status clear(std::byte* at, size_t size) noexcept {
    std::memset(at, 0, size);
    return {};
  }
  Status finish() noexcept { return emulated_operation("a kernel"); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct InOrder : Schedule {
    void sync() override {}
    void wait() override {}
  };
  class Skips : public Schedule {
   public:
    Skips(Fibres* fibres, unsigned skip) : fibres_(fibres), skip_(skip) {}
    void sync() override { ++n_ == skip_ ? fibres_->wait() : fibres_->sync(); }
    void wait() override { fibres_->wait(); }

   private:
    Fibres* fibres_;
    unsigned skip_, n_ = 0;
  };
  static constexpr size_t kSlack = 1024;  // lines, that kernels without a barrier may touch

  std::byte* shared_of(size_t size, unsigned slot) {
    return size == 0 ? nullptr : shared_[(size + 63) / 64 * slot].bytes;
  }

  // Memory is taken before a warp begins.
  template <class K>
  Status run(const K& kernel, uint64_t blocks) {
    if (seed_ == 0 && !may_sync<K>()) return in_order(kernel, blocks);
    const unsigned resident = seed_ == 0 ? 1 : kResident;
    shared_.resize(std::max(shared_.size(), (shared_by<K>() + 63) / 64 * resident + kSlack));
    const bool done = fibres_.run(
        blocks, K::kWarps, resident, seed_, [&](uint64_t block, unsigned slot, unsigned warp) {
          Skips skips(&fibres_, skip_);
          HostWarp w(block, blocks, warp, shared_of(shared_by<K>(), slot), &skips);
          kernel(w);
        });
    seed_ += seed_ != 0;
    return done ? Status() : fail(Code::kDevice, "cuda: the warps wait for each other");
  }

  template <class K>
  Status in_order(const K& kernel, uint64_t blocks) {
    InOrder schedule;
    shared_.resize(std::max(shared_.size(), (shared_by<K>() + 63) / 64));
    for (uint64_t block = 0; block < blocks; ++block) {
      for (unsigned warp = 0; warp < K::kWarps; ++warp) {
        HostWarp w(block, blocks, warp, shared_of(shared_by<K>(), 0), &schedule);
        kernel(w);
      }
    }
    return {};
  }

  uint64_t seed_;
  unsigned skip_;
  int device_ = -1;
  Fibres fibres_;
  std::vector<Line> shared_;
};

}  // namespace wirepress::cuda
