// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include "engines/cuda/seal.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <random>
#include <vector>

#include "engines/cuda/emulated_stream.hpp"

namespace wirepress::cuda {
namespace {

std::vector<std::byte> noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

struct Hash {
  static constexpr unsigned kWarps = 8;
  static constexpr size_t kShared = Xxh3::kShared(kWarps);
  const std::byte* from;
  uint64_t size, seed;
  uint32_t* to;
  Xxh3 hash;

  template <class W>
  void operator()(W& w) const {
    const uint32_t low = hash.low_half<kWarps>(w, from, size, seed);
    if (w.warp() == 0) *to = low;
  }
};

uint32_t hashed(ConstBytes data, uint64_t seed, uint64_t schedule, unsigned skip = 0) {
  Emulator device(schedule, skip);
  Emulator::Memory memory;  // cut to the byte
  EXPECT_TRUE(memory.prepare(data.size()).ok());
  EXPECT_TRUE(device.upload(memory.get(), data).ok());
  uint32_t low = 0;
  EXPECT_TRUE(device.launch(Hash{memory.get(), data.size(), seed, &low, {}}, 1).ok());
  return low;
}

uint32_t expected(ConstBytes data, uint64_t seed) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(data.data(), data.size(), seed));
}

TEST(CudaXxh3, IsThatOfEverySize) {
  const auto data = noise(70000, 1);
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 1400; ++size) sizes.push_back(size);
  for (const size_t k : {2, 7, 8, 9, 16, 17, 60})
    for (const size_t size : {1024 * k - 1, 1024 * k, 1024 * k + 1, 1024 * k + 65})
      sizes.push_back(size);
  for (const size_t size : sizes) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, 0x8000000500000003u, ~uint64_t{0}}) {
      const auto part = ConstBytes(data).first(size);
      ASSERT_EQ(hashed(part, seed, 0), expected(part, seed)) << size << " seed " << seed;
    }
  }
}

TEST(CudaXxh3, WarpsMayGoOnInAnyOrder) {
  const auto data = noise(40000, 2);
  for (uint64_t schedule = 1; schedule < 40; ++schedule)
    ASSERT_EQ(hashed(data, 7, schedule), expected(data, 7)) << schedule;
}

TEST(CudaXxh3, FindsABarrierThatIsMissing) {
  const auto data = noise(40000, 3);
  for (unsigned skip = 1; skip <= 4; ++skip) {
    bool found = false;
    for (uint64_t schedule = 1; schedule < 60 && !found; ++schedule)
      found = hashed(data, 7, schedule, skip) != expected(data, 7);
    EXPECT_TRUE(found) << "barrier " << skip;
  }
}

struct Copy {
  static constexpr unsigned kWarps = 1;
  const std::byte* from;
  std::byte* to;
  uint64_t n;

  template <class W>
  void operator()(W& w) const {
    copy_any(w, from, to, n);
  }
};

TEST(CudaSeal, CopiesBetweenAnyAddresses) {
  const auto data = noise(400, 4);
  for (size_t n = 0; n < 300; n += 1 + n / 40) {
    for (size_t to = 0; to < 8; ++to) {
      Emulator device;
      Emulator::Memory source, target;
      ASSERT_TRUE(source.prepare(n).ok());
      ASSERT_TRUE(target.prepare(to + n).ok());
      ASSERT_TRUE(device.upload(source.get(), ConstBytes(data).first(n)).ok());
      ASSERT_TRUE(device.launch(Copy{source.get(), target.get() + to, n}, 1).ok());
      if (n > 0) {
        ASSERT_EQ(std::memcmp(target.get() + to, data.data(), n), 0) << n << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace wirepress::cuda
