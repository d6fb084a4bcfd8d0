// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/emulator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::cuda {
namespace {

// Each warp adds what the others told it before a barrier.
struct Tell {
  static constexpr unsigned kWarps = 5;
  static constexpr size_t kShared = 4 * kWarps;
  uint64_t* sums;  // of each warp

  template <class W>
  void operator()(W& w) const {
    auto* const told = reinterpret_cast<uint32_t*>(w.shared());
    for (uint32_t turn = 1; turn < 4; ++turn) {
      told[w.warp()] = turn * (w.warp() + 1);
      w.sync();
      sums[w.block() * kWarps + w.warp()] += std::accumulate(told, told + kWarps, uint64_t{0});
      w.sync();
    }
  }
};

// Sizes of chunks to places, by number.
struct Place {
  static constexpr unsigned kWarps = 1;
  std::byte* scratch;
  uint64_t* places;

  static uint64_t size_of(uint64_t number) { return number % 7 * 1000 + 1; }
  template <class W>
  void operator()(W& w) const {
    const Places all(scratch);
    const uint64_t number = all.next(w);
    if (number % 3 == 0) w.wait();
    places[number] = all.before(w, number, size_of(number));
  }
};

// The first block waits for the last.
struct Hang {
  static constexpr unsigned kWarps = 1;
  uint64_t* word;

  template <class W>
  void operator()(W& w) const {
    if (w.block() + 1 == w.blocks()) w.publish(word, 1);
    while (w.published(word) == 0) w.wait();
  }
};

TEST(CudaEmulator, WarpsWaitForEachOtherInAnyOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<uint64_t> sums(7 * Tell::kWarps);
    ASSERT_TRUE(Emulator(seed).launch(Tell{sums.data()}, 7).ok());
    for (const uint64_t sum : sums) ASSERT_EQ(sum, (1 + 2 + 3) * 15u) << "seed " << seed;
  }
}

TEST(CudaEmulator, FindsABarrierThatIsMissing) {
  for (unsigned skip = 1; skip <= 5; ++skip) {  // nobody needs the last one
    bool found = false;
    for (uint64_t seed = 1; seed < 50 && !found; ++seed) {
      std::vector<uint64_t> sums(7 * Tell::kWarps);
      ASSERT_TRUE(Emulator(seed, skip).launch(Tell{sums.data()}, 7).ok());
      for (const uint64_t sum : sums) found |= sum != 90;
    }
    EXPECT_TRUE(found) << "barrier " << skip;
  }
}

TEST(CudaEmulator, BlocksFindTheirPlaces) {
  for (const uint64_t chunks : {1, 2, 31, 32, 33, 100, 1000}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<uint64_t> scratch(chunks + 1), places(chunks);
      auto* const bytes = reinterpret_cast<std::byte*>(scratch.data());
      ASSERT_TRUE(Emulator(seed).launch(Place{bytes, places.data()}, chunks).ok());
      for (uint64_t i = 0, at = 0; i < chunks; at += Place::size_of(i++))
        ASSERT_EQ(places[i], at) << "chunk " << i << " of " << chunks << ", seed " << seed;
    }
  }
}

TEST(CudaEmulator, SaysWhenWarpsWaitForWhatCannotCome) {
  uint64_t word = 0;
  EXPECT_TRUE(Emulator(1).launch(Hang{&word}, Emulator::kResident).ok());
  word = 0;
  const Status status = Emulator(1).launch(Hang{&word}, Emulator::kResident + 1);
  EXPECT_EQ(status.code(), Code::kDevice);
}

// A device whose operation number `fails_at` fails, and what it was left with.
struct Odd {
  static inline int fails_at = 0, n = 0, alive = 0;
  static inline bool copying = false;
  static inline uint64_t reports = 0;  // bytes of the code

  struct Bound {
    explicit Bound(const Odd&) {}
  };
  struct Memory {
    std::vector<std::byte> bytes;
    std::byte* get() { return bytes.data(); }
    Status prepare(size_t size) { return bytes.resize(size), step(); }
  };
  Odd() { ++alive; }
  ~Odd() { --alive; }
  static Status step() {
    return ++n == fails_at ? fail(Code::kDevice, "operation %d", n) : Status();
  }
  static Status copy(void* to, const void* from, size_t size) {
    copying = true;
    if (size > 0) std::memcpy(to, from, size);
    return step();
  }
  static Status open(int) { return step(); }
  static std::byte* reach(const void*, size_t) { return nullptr; }
  static Status upload(std::byte* to, ConstBytes from) {
    return copy(to, from.data(), from.size());
  }
  static Status download(Bytes to, const std::byte* from) {
    return copy(to.data(), from, to.size());
  }
  static Status clear(std::byte*, size_t) { return step(); }
  static Status finish() { return copying = false, step(); }
};

struct Copies {
  static constexpr const char* kName = "copies";
  static constexpr bool kGradients = false;
  static constexpr bool kKeepsSize = false;
  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args&, size_t) { return 8; }
  template <bool, class D>
  static Status encode(D& device, const Args&, const Task& task) {
    std::memcpy(task.code, task.raw, task.raw_size);
    task.report->written = D::reports;
    return device.step();
  }
  template <bool, class D>
  static Status decode(D& device, const Args&, const Task& task) {
    std::memcpy(task.raw, task.code, task.raw_size);
    return device.step();
  }
};

constexpr Kernel kOdd = KernelOf<Copies, Odd>::kernel("odd", always_usable);

TEST(CudaKernel, NothingIsOnItsWayAfterAFailure) {
  std::vector<std::byte> raw(100), code(100);
  Odd::reports = raw.size();
  int failed = 0;
  for (Odd::fails_at = 1; Odd::fails_at < 40; ++Odd::fails_at) {
    void* state = &raw;
    Odd::n = 0;
    if (!kOdd.open({}, &state).ok()) {
      EXPECT_EQ(state, nullptr);
      EXPECT_EQ(Odd::alive, 0);
      continue;
    }
    size_t written = 0;
    const bool encodes = kOdd.encode(state, {}, raw, code, &written).ok();
    EXPECT_FALSE(Odd::copying) << Odd::fails_at;
    const bool decodes = kOdd.decode(state, {}, code, raw, &written).ok();
    EXPECT_FALSE(Odd::copying) << Odd::fails_at;
    failed += !encodes + !decodes;
    kOdd.close(state);
    EXPECT_EQ(Odd::alive, 0);
  }
  EXPECT_GT(failed, 15);
  Odd::fails_at = 0;
}

TEST(CudaKernel, ACodeLargerThanItsRoomIsTheDevicesFault) {
  std::vector<std::byte> raw(100), code(100);
  void* state = nullptr;
  ASSERT_TRUE(kOdd.open({}, &state).ok());
  for (const size_t size : {size_t{99}, size_t{100}, size_t{101}, SIZE_MAX}) {
    Odd::reports = size;
    size_t written = 0;
    const Status status = kOdd.encode(state, {}, raw, code, &written);
    EXPECT_EQ(status.code(), size <= 100 ? Code::kOk : Code::kDevice) << size;
  }
  // No codec that keeps the size: all of dst is the raw data.
  std::vector<std::byte> more(100);
  size_t written = 0;
  ASSERT_TRUE(kOdd.decode(state, {}, code, more, &written).ok());
  EXPECT_EQ(written, more.size());
  ASSERT_TRUE(
      kOdd.decode(state, {}, ConstBytes(code).first(50), Bytes(more).first(50), &written).ok());
  kOdd.close(state);
}

TEST(CudaEngine, SaysNothingOfAStateBeforeItIsSelected) {
  for (const Engine* engine : engines()) {
    if (std::string_view(engine->name) != "cuda" || engine->state == nullptr) continue;
    EXPECT_EQ(engine->state(), "");
  }
}

TEST(CudaEngine, SaysWhyItIsNotThere) {
  for (const Engine* engine : engines()) {
    if (std::string_view(engine->name) != "cuda") continue;
    const char* const reason = engine->unavailable();
    EXPECT_TRUE(reason == nullptr || std::string_view(reason).starts_with("no device")) << reason;
    return;
  }
  FAIL() << "no engine cuda";
}

}  // namespace
}  // namespace wirepress::cuda
