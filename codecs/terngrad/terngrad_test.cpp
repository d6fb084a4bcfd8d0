// SPDX-License-Identifier: Apache-2.0
#include "codecs/terngrad/terngrad.hpp"

#include "codecs/common/testing/feedback.hpp"

namespace wirepress {
namespace {

using namespace feedback;

const int kNoClip = 0;
const int kClip25 = real_param(25, -1);

TEST(Terngrad, KeepsTheLawOfFeedback) {
  check_law(Coder("terngrad", {kNoClip}), "no clip");
  check_law(Coder("terngrad", {kClip25}), "clip 2.5");
}

TEST(Terngrad, NanChunks) {
  check_nan_chunks(Coder("terngrad", {kNoClip}), terngrad::kValues);
  check_nan_chunks(Coder("terngrad", {kClip25}), terngrad::kValues);
}

TEST(Terngrad, DrawsAreUnbiased) {
  constexpr int kSeeds = 3000;
  const Floats values = gradient(6000, 3);
  const std::vector<double> mean = mean_of_draws(Coder("terngrad", {kNoClip}), values, kSeeds);
  for (size_t begin = 0; begin < values.size(); begin += terngrad::kValues) {
    const size_t end = std::min(begin + terngrad::kValues, values.size());
    double scale = 0, z_sum = 0, z_squares = 0, n = 0;
    for (size_t i = begin; i < end; ++i) scale = std::max(scale, std::fabs(double{values[i]}));
    for (size_t i = begin; i < end; ++i) {
      const double p = std::fabs(double{values[i]}) / scale;
      const double sigma = scale * std::sqrt(p * (1 - p) / kSeeds);
      const double error = mean[i] - double{values[i]};
      if (p * kSeeds < 10 || p == 1) {  // too few to be normal
        ASSERT_LE(std::fabs(error), scale * (p + 30.0 / kSeeds)) << i;
        continue;
      }
      ASSERT_LE(std::fabs(error), 5.5 * sigma) << i;
      z_sum += error / sigma;
      z_squares += error * error / (sigma * sigma);
      n += 1;
    }
    EXPECT_LE(std::fabs(z_sum), 4.5 * std::sqrt(n));      // no common drift
    EXPECT_NEAR(z_squares / n, 1, 6 * std::sqrt(2 / n));  // and the variance of fair draws
  }
}

TEST(Terngrad, TheLargestIsAlwaysTaken) {
  Coder coder("terngrad", {kNoClip});
  Floats values = gradient(4096, 8);
  values[1234] = -1.7f;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    coder.args().seed = seed;
    ASSERT_EQ(coder.quantised(values)[1234], -1.7f);
  }
}

TEST(Terngrad, DrawsDependOnIndexNotOnBlock) {
  Coder coder("terngrad", {kNoClip});
  Floats values = gradient(3 * 4096, 8);
  for (const size_t i : {size_t{0}, size_t{4096}, size_t{8192}}) values[i] = 0.01f;  // one scale
  const Floats whole = coder.quantised(values);
  const Floats second(values.begin() + 4096, values.begin() + 8192);
  coder.args().first = 4096;
  const Floats part = coder.quantised(second);
  EXPECT_EQ(part, Floats(whole.begin() + 4096, whole.begin() + 8192));
}

TEST(Terngrad, ClipsAtStandardDeviations) {
  constexpr double kSigma = 0.02;
  const Floats values = normal(4096, 4, kSigma);
  const Floats decoded = Coder("terngrad", {kClip25}).quantised(values);
  double sum = 0, squares = 0;
  for (const float x : values) {
    sum += double{x};
    squares += double{x} * double{x};
  }
  const double mean = sum / 4096;
  const double limit = 2.5 * std::sqrt(squares / 4096 - mean * mean);
  EXPECT_NEAR(limit, 2.5 * kSigma, 0.1 * kSigma);
  for (size_t i = 0; i < values.size(); ++i) {
    if (decoded[i] == 0) {
      ASSERT_LE(std::fabs(double{values[i]}), limit * 1.0001) << i;
      continue;
    }
    ASSERT_NEAR(std::fabs(double{decoded[i]}), limit, limit * 1e-5);
    ASSERT_EQ(decoded[i] < 0, values[i] < 0) << i;
  }
  // Where squares leave the range of float32 there is no clipping, but still a code.
  EXPECT_EQ(Coder("terngrad", {kClip25}).quantised(Floats(64, 1e-25f)), Floats(64, 1e-25f));
  EXPECT_EQ(Coder("terngrad", {kClip25}).quantised(Floats(64, -1e30f)), Floats(64, -1e30f));
}

TEST(Terngrad, TheExampleOfTheSpecification) {
  const Floats raw = {2.0f, -2.0f, 0.0f, 2.0f, -0.0f};
  const Coded code = Coder("terngrad", {kNoClip}).encode(raw);
  const uint8_t expected[] = {0, 0, 0, 0x40, 0x0B, 0, 0, 0, 0x02, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
}

TEST(Terngrad, RefusesWhatNoEncoderWrites) {
  const auto refuses = [&](uint32_t scale, uint32_t taken, uint32_t negative) {
    Coded code(12);
    std::memcpy(code.data(), &scale, 4);
    std::memcpy(code.data() + 4, &taken, 4);
    std::memcpy(code.data() + 8, &negative, 4);
    return refused(Coder("terngrad", {kNoClip}), code, 4 * 5);
  };
  EXPECT_FALSE(refuses(0x3F800000, 0x1F, 0x03));
  EXPECT_TRUE(refuses(0x3F800000, 0x1D, 0x03));  // a negative zero
  EXPECT_TRUE(refuses(0x3F800000, 0x3F, 0x03));  // bits of no value
  EXPECT_TRUE(refuses(0x3F800000, 0x3F, 0x20));
  EXPECT_TRUE(refuses(0xBF800000, 0x1F, 0x03));
  EXPECT_TRUE(refuses(0x80000000, 0, 0));
  EXPECT_TRUE(refuses(0x7F800000, 0x1F, 0x03));
  EXPECT_TRUE(refuses(0x7FC00000, 0x01, 0));
  EXPECT_TRUE(refuses(0x7FC00001, 0, 0));
  EXPECT_FALSE(refuses(0x7FC00000, 0, 0));
}

TEST(Terngrad, Parameters) {
  const Codec& codec = *find_codec("terngrad", 8)->codec;
  Args args{DType::kFloat64, {}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  args = {DType::kFloat32, {real_param(1, -2)}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  args = {DType::kFloat32, {real_param(1001, -1)}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
