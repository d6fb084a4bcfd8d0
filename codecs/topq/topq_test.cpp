// SPDX-License-Identifier: Apache-2.0
// topq sends what sorting says, keeps the law of feedback, and refuses what no encoder writes.
#include "codecs/topq/topq.hpp"

#include <numeric>

#include "codecs/common/testing/feedback.hpp"

namespace wirepress {
namespace {

using namespace feedback;

const int kSixtyFour = real_param(64, 0);

Coder coder_of(int k) { return Coder("topq", {real_param(k, 0)}); }

TEST(Topq, KeepsTheLawOfFeedback) {
  check_law(coder_of(64), "k 64");
  check_law(coder_of(1500), "k 1500");
  check_law(Coder("topq", {real_param(4096, 0)}), "all");
}

TEST(Topq, NanChunks) { check_nan_chunks(coder_of(64), topq::kValues); }

float bfloat(double x) {
  uint32_t bits = word(static_cast<float>(x));
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  return std::bit_cast<float>(bits);
}

// One chunk as the document says, by sorting.
Floats sorted_out(const Floats& x, size_t k) {
  const size_t m = (k * x.size() + topq::kValues - 1) / topq::kValues;
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
  order.resize(m);
  std::sort(order.begin(), order.end());
  double sum = 0, sums[2] = {}, counts[2] = {};
  bool zero = false;
  for (const size_t i : order) {
    sum += std::fabs(double{x[i]});
    zero = zero || x[i] == 0;
  }
  const auto is_high = [&](size_t i) {
    return zero ? x[i] != 0 : std::fabs(double{x[i]}) >= sum / static_cast<double>(m);
  };
  for (const size_t i : order) {
    sums[is_high(i)] += std::fabs(double{x[i]});
    counts[is_high(i)] += 1;
  }
  Floats out(x.size());
  for (const size_t i : order) {
    const bool high = is_high(i);
    const double mean = sums[high] / counts[high];
    const float level = mean > 0 ? std::max(bfloat(mean), std::bit_cast<float>(0x10000)) : 0.0f;
    if (level != 0) out[i] = x[i] < 0 ? -level : level;
  }
  return out;
}

TEST(Topq, SendsTheLargestAtTwoLevels) {
  for (const int k : {1, 2, 64, 255, 256, 257, 1023, 1024, 4095}) {
    const Coder coder = coder_of(k);
    for (const size_t n : {1, 15, 64, 129, 500, 1000, 4095, 4096}) {
      Floats few(n), equal(n, -2.5f), steps(n);
      few[n / 2] = -3;
      for (size_t i = 0; i < n; ++i) steps[i] = static_cast<float>(i * 7919 % 13) - 6;
      for (const Floats& x :
           {gradient(n, n), normal(n, n, 1.0), normal(n, n, 1e-41), few, equal, steps, Floats(n)}) {
        const Floats expected = sorted_out(x, static_cast<size_t>(k));
        for (const Kernel* kernel : coder.kernels()) {
          const Floats got = coder.decode(coder.encode(*kernel, bytes(x)), n);
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(word(got[i]), word(expected[i]))
                << kernel->variant << ", k " << k << ", value " << i << " of " << n;
        }
      }
    }
  }
}

TEST(Topq, SizeAtTheDefault) {
  const size_t n = 16 * topq::kValues;
  const size_t size = coder_of(64).encode(normal(n, 1, 1e-3)).size();
  EXPECT_EQ(size, 16u * (4 + 16 + 48 + 8 + 8));
  EXPECT_LE(static_cast<double>(size), 0.76 * 16 * 64 * (12 + 2) / 8);
}

// Nothing is lost of what feedback keeps: what was sent and what is left make the sum of all.
TEST(Topq, FeedbackSendsAllInTheEnd) {
  const Coder coder = coder_of(64);
  const size_t n = topq::kValues;
  const Floats x = normal(n, 3, 1e-2);
  Floats residual(n), sent(n);
  Coded code(coder.bound(4 * n));
  const Kernel& kernel = *coder.kernels().front();
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    size_t written = 0;
    ASSERT_TRUE(kernel
                    .encode_feedback(coder.state(kernel), coder.args(), bytes(x), bytes(residual),
                                     code, &written)
                    .ok());
    ASSERT_TRUE(kernel
                    .decode_add(coder.state(kernel), coder.args(), ConstBytes(code).first(written),
                                bytes(sent))
                    .ok());
  }
  for (size_t i = 0; i < n; ++i)
    ASSERT_NEAR(double{sent[i]} + double{residual[i]}, kRounds * double{x[i]}, 1e-3) << i;
}

TEST(Topq, RefusesWhatNoEncoderWrites) {
  const Coder coder = coder_of(1024);
  const auto refuses = [&](std::vector<uint8_t> code, size_t n) {
    return refused(coder, std::as_bytes(std::span(code)), 4 * n);
  };
  EXPECT_FALSE(refuses({0x00, 0x40, 0x40, 0x40, 0x24, 1, 1}, 8));
  EXPECT_TRUE(refuses({0x00, 0x40, 0x40, 0x40, 0x24, 1}, 8));
  EXPECT_TRUE(refuses({0x00, 0x40, 0x40, 0x40, 0x24, 1, 1, 0}, 8));
  EXPECT_TRUE(refuses({0x41, 0x40, 0x40, 0x40, 0x24, 1, 1}, 8));  // levels in the other order
  EXPECT_TRUE(refuses({0x00, 0x40, 0x80, 0x7F, 0x24, 1, 1}, 8));  // infinity
  EXPECT_TRUE(refuses({0x00, 0xC0, 0x40, 0x40, 0x24, 1, 1}, 8));  // negative
  EXPECT_TRUE(refuses({0x00, 0x40, 0x40, 0x40, 0x25, 1, 1}, 8));  // three places
  EXPECT_TRUE(refuses({0x00, 0x40, 0x40, 0x40, 0x24, 5, 1}, 8));  // bits of no value
  EXPECT_TRUE(refuses({0x00, 0x40, 0x40, 0x40, 0x24, 1, 4}, 8));
  EXPECT_TRUE(refuses({0x00, 0x00, 0x40, 0x40, 0x24, 1, 0}, 8));  // -0
  EXPECT_FALSE(refuses({0x00, 0x00, 0x40, 0x40, 0x24, 1, 1}, 8));
  EXPECT_FALSE(refuses({0xC0, 0x7F, 0xC0, 0x7F, 0x00, 0, 0}, 8));
  EXPECT_TRUE(refuses({0xC0, 0x7F, 0xC0, 0x7F, 0x24, 0, 0}, 8));
  EXPECT_TRUE(refuses({0xC0, 0x7F, 0xC1, 0x7F, 0x00, 0, 0}, 8));
  // Elias-Fano: 2 of 8192 values' first chunk is not short; of 9 values 3, a bitmap; of 1 value 1.
  EXPECT_FALSE(refuses({0x00, 0x00, 0x40, 0x40, 1, 1}, 1));
  const Coder thin = coder_of(1);
  std::vector<uint8_t> one(4 + 1 + 2 + 2);  // 1 + floor(4095 / 4096) high bits, 12 low bits
  one[2] = 0x40, one[3] = 0x40, one[4] = 1, one[5] = 0xFF, one[6] = 0x0F, one[8] = 1;
  EXPECT_FALSE(refused(thin, std::as_bytes(std::span(one)), 4 * 4096));
  one[6] = 0x1F;
  EXPECT_TRUE(refused(thin, std::as_bytes(std::span(one)), 4 * 4096));
  one[6] = 0x0F, one[4] = 2;
  EXPECT_TRUE(refused(thin, std::as_bytes(std::span(one)), 4 * 4096));
  one[4] = 0;
  EXPECT_TRUE(refused(thin, std::as_bytes(std::span(one)), 4 * 4096));
}

TEST(Topq, Parameters) {
  const Codec& codec = *find_codec("topq", 4)->codec;
  for (const int bad : {0, real_param(15, -1), real_param(4097, 0), real_param(1, 4)}) {
    Args args{DType::kFloat32, {bad}};
    EXPECT_EQ(codec.check(&args).code(), Code::kParameter) << bad;
  }
  Args args{DType::kFloat64, {kSixtyFour}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
