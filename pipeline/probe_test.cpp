// SPDX-License-Identifier: Apache-2.0
// The probe of a device's blocks (engines/cuda/values.hpp): warps in any order find the noise that
// the cores find, and where a barrier is missing some order does not.
#include "pipeline/probe.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/noise.hpp"
#include "engines/cuda/emulator.hpp"
#include "engines/cuda/values.hpp"

namespace wirepress {
namespace {

using cuda::Emulator;
using cuda::FindNoise;
using Data = std::vector<std::byte>;

// `n_values` of a byte's, all equally often.
Data bytes(size_t size, unsigned n_values, unsigned seed) {
  std::mt19937 random(seed);
  Data data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random() % n_values);
  return data;
}

bool found(ConstBytes data, uint64_t schedule, unsigned skip = 0) {
  Emulator device(schedule, skip);
  Emulator::Memory memory;
  EXPECT_TRUE(memory.prepare(data.size()).ok());
  EXPECT_TRUE(device.upload(memory.get(), data).ok());
  Report report = kNoReport;
  const Probing probing = {memory.get(), data.size(), data.size(), 1, &report};
  EXPECT_TRUE(device.launch(FindNoise{probing}, 1).ok());
  return report.full == Report::kNoise;
}

TEST(Noise, WeightsAreThoseOfTheEntropy) {
  for (uint32_t n = 0; n <= noise::kSample; ++n) {
    const double exact = n < 2 ? 0 : n * std::log2(static_cast<double>(n)) * 65536;
    ASSERT_NEAR(noise::weight(n), exact, n / 256.0 + 1) << n;
  }
}

TEST(Noise, IsWhatTheCoresFind) {
  size_t n_found = 0, n_all = 0;
  for (const size_t size : {size_t{0}, size_t{8191}, size_t{8192}, size_t{8193}, size_t{100000}})
    for (unsigned n_values = 190; n_values <= 256; n_values += 2, ++n_all) {
      const Data data = bytes(size, n_values, n_values);
      const bool expected = looks_incompressible(data);
      ASSERT_EQ(found(data, n_values), expected) << size << " bytes of " << n_values << " values";
      n_found += expected;
    }
  EXPECT_GT(n_found, n_all / 20);
  EXPECT_LT(n_found, n_all / 2);
}

TEST(Noise, WarpsMayGoOnInAnyOrder) {
  const Data noise = bytes(9000, 256, 1), text = bytes(9000, 200, 2);
  for (uint64_t schedule = 1; schedule < 40; ++schedule) {
    ASSERT_TRUE(found(noise, schedule)) << schedule;
    ASSERT_FALSE(found(text, schedule)) << schedule;
  }
}

TEST(Noise, FindsABarrierThatIsMissing) {
  const Data noise = bytes(9000, 256, 1);
  for (unsigned skip = 1; skip <= 2; ++skip) {
    bool wrong = false;
    for (uint64_t schedule = 1; schedule < 60 && !wrong; ++schedule)
      wrong = !found(noise, schedule, skip);
    EXPECT_TRUE(wrong) << "barrier " << skip;
  }
}

}  // namespace
}  // namespace wirepress
