// SPDX-License-Identifier: Apache-2.0
// The encoder of rtl/zfp against libzfp, byte for byte: smooth fields, noise, random words, tiny
// and great magnitudes; one and two dimensions, edges of every kind, all modes; with pauses on both
// sides, and in the clocks that rtl/zfp/README.md promises.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "base/kernel.hpp"
#include "engines/rtl/simulation.hpp"

namespace wirepress {
namespace {

using Buffer = std::vector<std::byte>;

class ZfpCore : public testing::Test {
 protected:
  void SetUp() override {
    const Entry* entry = find_codec("zfp", 3);
    if (entry == nullptr) GTEST_SKIP() << "built without zfp";
    codec = entry->codec;
    for (const Kernel* kernel : entry->kernels)
      (std::string_view(kernel->engine) == "rtl" ? core : library) = kernel;
    if (core == nullptr) GTEST_SKIP() << "built without Verilator";
    ASSERT_TRUE(library->open({}, &library_state).ok());
    open_core();
  }
  void TearDown() override {
    if (core == nullptr) return;
    library->close(library_state);
    core->close(core_state);
    rtl::pauses = {};
  }
  void open_core() {
    if (core_state != nullptr) core->close(core_state);
    ASSERT_TRUE(core->open({}, &core_state).ok());
  }

  // Encodes an array of rows of nx values (0: one dimension) on both; the clocks of the core.
  uint64_t compare(const std::vector<float>& values, size_t nx, int param, int value) {
    Args args;
    args.dtype = DType::kFloat32;
    args.value[static_cast<size_t>(param)] = value;
    if (nx > 0) {
      args.n_dims = 2;
      args.shape = {values.size() / nx, nx};
    }
    const auto src = std::as_bytes(std::span(values));
    Buffer expected(codec->bound(args, src.size())), got(expected.size());
    EXPECT_TRUE(codec->check(&args).ok());
    size_t expected_size = 0, got_size = 0;
    EXPECT_TRUE(library->encode(library_state, args, src, expected, &expected_size).ok());
    const uint64_t before = rtl::clocks;
    const Status status = core->encode(core_state, args, src, got, &got_size);
    EXPECT_TRUE(status.ok()) << status.text();
    expected.resize(expected_size);
    got.resize(got_size);
    EXPECT_TRUE(got == expected) << values.size() << " values, rows of " << nx << ", parameter "
                                 << param << " = " << value;
    return rtl::clocks - before;
  }

  // Blocks of values until there were so many cells.
  void run(size_t n_cells, unsigned seed) {
    std::mt19937_64 random(seed);
    const uint64_t before = rtl::clocks;
    const size_t least = n_cells / 16;  // clocks; some blocks are libzfp's
    while (n_cells > 0 && !HasFailure()) {
      const size_t nx = random() % 2 == 0 ? 0 : 1 + random() % 70;
      const size_t n = nx == 0 ? 1 + random() % 9000 : nx * (1 + random() % 130);
      const auto values = field(n, nx == 0 ? 64 : nx, &random);
      switch (random() % 4) {
        case 0:
          compare(values, nx, kRate, real_param(static_cast<int>(2 + random() % 319), -1));
          break;
        case 1:
          compare(values, nx, kRate, real_param(static_cast<int>(1 + random() % 32), 0));
          break;
        case 2:
          compare(values, nx, kPrecision, static_cast<int>(1 + random() % 40));
          break;
        default:
          compare(
              values, nx, kAccuracy,
              real_param(1 + static_cast<int>(random() % 9), static_cast<int>(random() % 12) - 9));
      }
      const size_t cells = nx == 0 ? n / 4 : n / 16;
      n_cells -= std::min(n_cells, cells + 1);
    }
    EXPECT_GE(rtl::clocks - before, least);
  }

  static std::vector<float> field(size_t n, size_t nx, std::mt19937_64* random) {
    std::vector<float> values(n);
    const unsigned kind = static_cast<unsigned>((*random)() % 6);
    const float scale = std::ldexp(1.0f, static_cast<int>((*random)() % 180) - 90);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < n; ++i) {
      const float x = static_cast<float>(i % nx), y = static_cast<float>(i / nx);
      const uint32_t word = static_cast<uint32_t>((*random)());
      switch (kind) {
        case 0:
          values[i] = scale * std::sin(0.07f * x) * std::cos(0.05f * y);
          break;
        case 1:
          values[i] = scale * normal(*random);
          break;
        case 2:  // any word below 2^65
          std::memcpy(&values[i], &word, 4);
          if (!(std::fabs(values[i]) < 0x1p65f)) values[i] = 0;
          break;
        case 3:  // a few values, of any magnitude
          values[i] =
              word % 13 == 0 ? std::ldexp(normal(*random), static_cast<int>(word >> 25)) : 0;
          break;
        case 4:  // denormals beside values that are not
          values[i] = word % 16 == 0 ? 1.0f : std::ldexp(normal(*random), -140);
          break;
        default:  // steps; great values with small ones
          values[i] = (i / 7 % 2 == 0 ? scale : 0.001f * scale) + scale * 1e-6f * normal(*random);
      }
    }
    return values;
  }

  enum { kAccuracy, kRate, kPrecision };
  const Codec* codec = nullptr;
  const Kernel *core = nullptr, *library = nullptr;
  void *core_state = nullptr, *library_state = nullptr;
};

TEST_F(ZfpCore, AsLibzfp) { run(100'000, 1); }

TEST_F(ZfpCore, WithPauses) {
  for (const unsigned pause : {32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = 256 - pause, .seed = pause};
    open_core();
    run(10'000, pause);
  }
}

TEST_F(ZfpCore, BeatAClock) {
  std::mt19937_64 random(3);
  for (const size_t nx : {size_t{0}, size_t{256}}) {
    const auto values = field(1 << 16, 256, &random);
    for (const int rate : {4, 8, 16, 30}) {
      const uint64_t clocks = compare(values, nx, kRate, real_param(rate, 0));
      EXPECT_GE(clocks, values.size() / 16);
      EXPECT_LE(clocks, values.size() / 16 + 45);
    }
  }
}

// --gtest_also_run_disabled_tests: 10^7 cells.
TEST_F(ZfpCore, DISABLED_Long) { run(10'000'000, 4); }

}  // namespace
}  // namespace wirepress
