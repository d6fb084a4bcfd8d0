// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/onebit.hpp"

#include "base/feedback_test.hpp"

namespace wirepress {
namespace {

using namespace feedback;

TEST(Onebit, KeepsTheLawOfFeedback) { check_law(Coder("onebit", {}), "onebit"); }

TEST(Onebit, NanChunks) { check_nan_chunks(Coder("onebit", {}), onebit::kValues); }

// Value by value against the definition, in doubles.
TEST(Onebit, DecodesToTheMeanOfItsClass) {
  const Floats values = gradient(10000, 5);
  const Floats decoded = Coder("onebit", {}).quantised(values);
  for (size_t begin = 0; begin < values.size(); begin += onebit::kValues) {
    const size_t end = std::min(begin + onebit::kValues, values.size());
    double sum[2] = {}, n[2] = {};
    for (size_t i = begin; i < end; ++i) {
      sum[values[i] < 0] += static_cast<double>(values[i]);
      n[values[i] < 0] += 1;
    }
    for (size_t i = begin; i < end; ++i) {
      const double mean = sum[values[i] < 0] / n[values[i] < 0];
      ASSERT_NEAR(static_cast<double>(decoded[i]), mean, std::fabs(mean) * 1e-6) << i;
    }
  }
}

TEST(Onebit, FeedbackLosesNothingInTheLongRun) {
  const Coder coder("onebit", {});
  const size_t n = 5000;
  const Floats g = gradient(n, 9);
  Floats residual(n), sum(n);
  Coded code(coder.bound(4 * n));
  constexpr int kSteps = 400;
  for (int step = 0; step < kSteps; ++step) {
    size_t written = 0;
    const Kernel& kernel = *coder.kernels().front();
    ASSERT_TRUE(
        kernel.encode_feedback(nullptr, coder.args(), bytes(g), bytes(residual), code, &written)
            .ok());
    ASSERT_TRUE(kernel.decode_add(nullptr, coder.args(), code, bytes(sum)).ok());
  }
  for (size_t i = 0; i < n; ++i)  // what was sent is what was to be sent, but for the residual
    ASSERT_NEAR(sum[i] + residual[i], kSteps * g[i], 1e-3f) << i;
}

TEST(Onebit, TheExampleOfTheSpecification) {
  const Floats raw = {1.0f, -2.0f, 0.0f, -0.0f, -4.0f};
  const Coded code = Coder("onebit", {}).encode(raw);
  const uint8_t expected[] = {0x00, 0x00, 0x40, 0xC0, 0xAB, 0xAA, 0xAA, 0x3E, 0x12, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
}

TEST(Onebit, RefusesWhatNoEncoderWrites) {
  const Coder coder("onebit", {});
  const auto refuses = [&](uint32_t negative, uint32_t other, uint32_t bits) {
    Coded code(12);
    std::memcpy(code.data(), &negative, 4);
    std::memcpy(code.data() + 4, &other, 4);
    std::memcpy(code.data() + 8, &bits, 4);
    return refused(coder, code, 4 * 5);
  };
  EXPECT_FALSE(refuses(0xC0400000, 0x3F800000, 0x1F));
  EXPECT_TRUE(refuses(0xC0400000, 0x3F800000, 0x20));  // a bit of no value
  EXPECT_TRUE(refuses(0x40400000, 0x3F800000, 0x1F));  // negative values with a positive mean
  EXPECT_TRUE(refuses(0x80000000, 0x3F800000, 0x1F));  // -0
  EXPECT_TRUE(refuses(0xC0400000, 0xBF800000, 0x1F));  // and the other way round
  EXPECT_TRUE(refuses(0xFF800000, 0x3F800000, 0x1F));  // infinite
  EXPECT_TRUE(refuses(0xC0400000, 0x7F800000, 0x1F));
  EXPECT_TRUE(refuses(0xC0400000, 0x7FC00000, 0));  // one NaN
  EXPECT_TRUE(refuses(0x7FC00000, 0x3F800000, 0));
  EXPECT_TRUE(refuses(0x7FC00001, 0x7FC00000, 0));  // another NaN
  EXPECT_TRUE(refuses(0x7FC00000, 0x7FC00000, 1));  // NaN with bits
  EXPECT_FALSE(refuses(0x7FC00000, 0x7FC00000, 0));
}

TEST(Onebit, TakesFloat32Only) {
  Args args{DType::kFloat64, {}};
  EXPECT_EQ(find_codec("onebit", 6)->codec->check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
