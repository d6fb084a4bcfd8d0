// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/emulator.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "engines/cuda/places.hpp"

namespace wirepress::cuda {
namespace {

// Each warp adds what the others told it before a barrier.
struct Tell {
  static constexpr unsigned kWarps = 5;
  static constexpr size_t kShared = 4 * kWarps;
  static constexpr bool kBarriers = true;
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
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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
