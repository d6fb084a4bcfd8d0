// SPDX-License-Identifier: Apache-2.0
#include "codecs/qsgd/qsgd.hpp"

#include "codecs/common/testing/feedback.hpp"

namespace wirepress {
namespace {

using namespace feedback;

TEST(Qsgd, KeepsTheLawOfFeedback) {
  for (int bits = 2; bits <= qsgd::kMostBits; ++bits)
    check_law(Coder("qsgd", {bits}), std::to_string(bits) + " bits");
}

TEST(Qsgd, NanChunks) {
  for (const int bits : {2, 4, 8}) check_nan_chunks(Coder("qsgd", {bits}), qsgd::kValues);
}

double unit_of(const Floats& values, size_t i, int bits) {
  const size_t begin = i / qsgd::kValues * qsgd::kValues;
  const size_t end = std::min(begin + qsgd::kValues, values.size());
  double largest = 0;
  for (size_t k = begin; k < end; ++k) largest = std::max(largest, std::fabs(double{values[k]}));
  return largest / ((1 << (bits - 1)) - 1);
}

TEST(Qsgd, ErrsByLessThanOneUnit) {
  const Floats values = gradient(3000, 5);
  for (int bits = 2; bits <= qsgd::kMostBits; ++bits) {
    const Floats decoded = Coder("qsgd", {bits}).quantised(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double unit = unit_of(values, i, bits);
      ASSERT_LE(std::fabs(double{decoded[i]} - double{values[i]}), unit * 1.0001) << bits;
      ASSERT_TRUE(decoded[i] == 0 || (decoded[i] < 0) == (values[i] < 0));
      ASSERT_TRUE(values[i] != 0 || word(decoded[i]) == 0);
    }
  }
}

TEST(Qsgd, DrawsAreUnbiased) {
  constexpr int kSeeds = 3000;
  const Floats values = gradient(1500, 3);
  for (const int bits : {2, 4, 8}) {
    const std::vector<double> mean = mean_of_draws(Coder("qsgd", {bits}), values, kSeeds);
    double z_sum = 0, z_squares = 0, n = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double unit = unit_of(values, i, bits);
      const double scaled = std::fabs(double{values[i]}) / unit;
      const double p = scaled - std::floor(scaled);
      const double sigma = unit * std::sqrt(p * (1 - p) / kSeeds);
      const double error = mean[i] - double{values[i]};
      if (std::min(p, 1 - p) * kSeeds < 10) {  // too few to be normal
        ASSERT_LE(std::fabs(error), unit * (std::min(p, 1 - p) + 30.0 / kSeeds)) << i;
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

TEST(Qsgd, DrawsDependOnIndexNotOnBlock) {
  Coder coder("qsgd", {4});
  const Floats values = gradient(2048, 8);
  const Floats whole = coder.quantised(values);
  coder.args().first = 1024;
  EXPECT_EQ(coder.quantised(Floats(values.begin() + 1024, values.end())),
            Floats(whole.begin() + 1024, whole.end()));
}

TEST(Qsgd, RangeOfUnits) {
  const Coder coder("qsgd", {4});
  EXPECT_EQ(coder.quantised(Floats(40, 1e-31f)), Floats(40, 0.0f));  // under 7 * 2^-100
  EXPECT_EQ(coder.quantised(Floats(40, 7 * 0x1p-100f)), Floats(40, 7 * 0x1p-100f));
  EXPECT_EQ(coder.quantised(Floats(40, -7.0f)), Floats(40, -7.0f));
}

TEST(Qsgd, TheExampleOfTheSpecification) {
  const Floats raw = {3.0f, -1.0f, 0.0f, 2.0f, -3.0f};
  const Coded code = Coder("qsgd", {3}).encode(raw);
  const uint8_t expected[] = {0, 0, 0x80, 0x3F, 0x13, 0, 0, 0, 0x19, 0, 0, 0, 0x12, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
}

TEST(Qsgd, RefusesWhatNoEncoderWrites) {
  const auto refuses = [&](uint32_t unit, uint32_t low, uint32_t high, uint32_t negative) {
    Coded code(16);
    std::memcpy(code.data(), &unit, 4);
    std::memcpy(code.data() + 4, &low, 4);
    std::memcpy(code.data() + 8, &high, 4);
    std::memcpy(code.data() + 12, &negative, 4);
    return refused(Coder("qsgd", {3}), code, 4 * 5);
  };
  EXPECT_FALSE(refuses(0x3F800000, 0x1D, 0x02, 0x1F));
  EXPECT_TRUE(refuses(0x3F800000, 0x1D, 0x00, 0x1F));  // a negative zero
  EXPECT_TRUE(refuses(0x3F800000, 0x3F, 0x00, 0x00));  // bits of no value
  EXPECT_TRUE(refuses(0xBF800000, 0x1D, 0x02, 0x1F));
  EXPECT_TRUE(refuses(0x80000000, 0, 0, 0));
  EXPECT_FALSE(refuses(0x00000000, 0, 0, 0));
  EXPECT_TRUE(refuses(0x00000000, 1, 0, 0));
  EXPECT_TRUE(refuses(0x0D7FFFFF, 1, 0, 0));  // under 2^-100
  EXPECT_FALSE(refuses(0x0D800000, 1, 0, 0));
  EXPECT_TRUE(refuses(0x7F000000, 1, 0, 0));  // 3 units would be infinite
  EXPECT_TRUE(refuses(0x7F800000, 1, 0, 0));
  EXPECT_TRUE(refuses(0x7FC00000, 1, 0, 0));
  EXPECT_TRUE(refuses(0x7FC00001, 0, 0, 0));
  EXPECT_FALSE(refuses(0x7FC00000, 0, 0, 0));
}

TEST(Qsgd, TakesFloat32Only) {
  Args args{DType::kFloat64, {4}};
  EXPECT_EQ(find_codec("qsgd", 4)->codec->check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
