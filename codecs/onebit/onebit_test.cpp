// SPDX-License-Identifier: Apache-2.0
#include "codecs/onebit/onebit.hpp"

#include "codecs/common/testing/feedback.hpp"

namespace wirepress {
namespace {

using namespace feedback;

constexpr int kDefault = onebit::kMostBlock;

TEST(Onebit, KeepsTheLawOfFeedback) {
  for (int block = onebit::kLeastBlock; block <= onebit::kMostBlock; ++block)
    check_law(Coder("onebit", {block}), "2^" + std::to_string(block));
}

TEST(Onebit, NanBlocks) {
  for (const int block : {5, 7, 12}) check_nan_chunks(Coder("onebit", {block}), size_t{1} << block);
}

// Value by value against the definition, in doubles.
void check_means(int block) {
  const Floats values = gradient(10000, 5);
  const Floats decoded = Coder("onebit", {block}).quantised(values);
  const size_t size = size_t{1} << block;
  for (size_t begin = 0; begin < values.size(); begin += size) {
    const size_t end = std::min(begin + size, values.size());
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

TEST(Onebit, DecodesToTheMeanOfItsClass) {
  for (const int block : {5, 6, 7, 11, 12}) check_means(block);
}

// What a block misses of values whose size changes from one run of 64 to the next, a small one has.
TEST(Onebit, SmallBlocksFollowTheSizeOfValues) {
  Floats values = normal(1 << 16, 3, 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= i / 64 % 8 == 0 ? 1.0f : 0.01f;
  const auto error = [&](int block) {
    const Floats decoded = Coder("onebit", {block}).quantised(values);
    double lost = 0, all = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = double{values[i]};
      lost += (x - double{decoded[i]}) * (x - double{decoded[i]});
      all += x * x;
    }
    return std::sqrt(lost / all);
  };
  EXPECT_NEAR(error(6), std::sqrt(1 - 2 / 3.141592653589793), 0.02);  // of normal values
  EXPECT_GT(error(12), 0.9);
}

TEST(Onebit, SizesByBlock) {
  for (int block = onebit::kLeastBlock; block <= onebit::kMostBlock; ++block) {
    const size_t n = 10000, n_blocks = (n + (size_t{1} << block) - 1) >> block;
    EXPECT_EQ(Coder("onebit", {block}).encode(Floats(n)).size(),
              8 * n_blocks + 4 * ((n + 31) / 32));
  }
}

TEST(Onebit, FeedbackLosesNothingInTheLongRun) {
  const Coder coder("onebit", {kDefault});
  const size_t n = 5000;
  const Floats g = gradient(n, 9);
  Floats residual(n), sum(n);
  Coded code(coder.bound(4 * n));
  constexpr int kSteps = 400;
  for (int step = 0; step < kSteps; ++step) {
    size_t written = 0;
    const Kernel& kernel = *coder.kernels().front();
    ASSERT_TRUE(kernel
                    .encode_feedback(coder.state(kernel), coder.args(), bytes(g), bytes(residual),
                                     code, &written)
                    .ok());
    ASSERT_TRUE(kernel.decode_add(coder.state(kernel), coder.args(), code, bytes(sum)).ok());
  }
  for (size_t i = 0; i < n; ++i)  // what was sent is what was to be sent, but for the residual
    ASSERT_NEAR(sum[i] + residual[i], kSteps * g[i], 1e-3f) << i;
}

TEST(Onebit, TheExampleOfTheSpecification) {
  const Floats raw = {1.0f, -2.0f, 0.0f, -0.0f, -4.0f};
  const Coded code = Coder("onebit", {kDefault}).encode(raw);
  const uint8_t expected[] = {0x00, 0x00, 0x40, 0xC0, 0xAB, 0xAA, 0xAA, 0x3E, 0x12, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
}

TEST(Onebit, RefusesWhatNoEncoderWrites) {
  const Coder coder("onebit", {kDefault});
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
  Args args{DType::kFloat64, {kDefault}};
  EXPECT_EQ(find_codec("onebit", 6)->codec->check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
