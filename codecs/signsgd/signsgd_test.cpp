// SPDX-License-Identifier: Apache-2.0
#include "codecs/signsgd/signsgd.hpp"

#include "codecs/common/testing/feedback.hpp"

namespace wirepress {
namespace {

using namespace feedback;

TEST(Signsgd, KeepsTheLawOfFeedback) {
  check_law(Coder("signsgd", {signsgd::kMean}), "mean");
  check_law(Coder("signsgd", {signsgd::kNone}), "none");
}

TEST(Signsgd, NanChunks) {
  check_nan_chunks(Coder("signsgd", {signsgd::kMean}), signsgd::kValues);
  check_nan_chunks(Coder("signsgd", {signsgd::kNone}), signsgd::kValues);
}

TEST(Signsgd, DecodesToSignTimesMean) {
  const Floats values = gradient(10000, 5);
  const Floats decoded = Coder("signsgd", {signsgd::kMean}).quantised(values);
  const Floats votes = Coder("signsgd", {signsgd::kNone}).quantised(values);
  for (size_t begin = 0; begin < values.size(); begin += signsgd::kValues) {
    const size_t end = std::min(begin + signsgd::kValues, values.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::fabs(static_cast<double>(values[i]));
    const double mean = sum / static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) {
      const double sign = values[i] < 0 ? -1 : 1;
      ASSERT_NEAR(static_cast<double>(decoded[i]), sign * mean, mean * 1e-6) << i;
      ASSERT_EQ(static_cast<double>(votes[i]), sign) << i;
    }
  }
}

// As spec.md says: decoded signs are added, the sign of the sum is the majority, a draw is +.
TEST(Signsgd, MajorityVote) {
  const Coder coder("signsgd", {signsgd::kNone});
  constexpr size_t kN = 5000;
  for (const int voters : {1, 2, 3, 8}) {
    Floats sum(kN), votes(kN);
    for (int voter = 0; voter < voters; ++voter) {
      const Floats g = normal(kN, static_cast<uint64_t>(voter), 1e-3);
      ASSERT_TRUE(coder.kernels()
                      .front()
                      ->decode_add(nullptr, coder.args(), coder.encode(g), bytes(sum))
                      .ok());
      for (size_t i = 0; i < kN; ++i) votes[i] += g[i] < 0 ? -1.0f : 1.0f;
    }
    EXPECT_EQ(sum, votes);
    const Floats majority = coder.quantised(sum);
    for (size_t i = 0; i < kN; ++i) ASSERT_EQ(majority[i], votes[i] < 0 ? -1.0f : 1.0f);
  }
}

TEST(Signsgd, TheExampleOfTheSpecification) {
  const Floats raw = {1.0f, -2.0f, 0.0f, -0.0f, -4.5f};
  const Coded code = Coder("signsgd", {signsgd::kMean}).encode(raw);
  const uint8_t expected[] = {0x00, 0x00, 0xC0, 0x3F, 0x12, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
}

TEST(Signsgd, RefusesWhatNoEncoderWrites) {
  const auto refuses = [&](int mode, uint32_t scale, uint32_t bits) {
    Coded code(8);
    std::memcpy(code.data(), &scale, 4);
    std::memcpy(code.data() + 4, &bits, 4);
    return refused(Coder("signsgd", {mode}), code, 4 * 5);
  };
  EXPECT_FALSE(refuses(signsgd::kMean, 0x3F000000, 0x1F));
  EXPECT_TRUE(refuses(signsgd::kMean, 0x3F000000, 0x20));
  EXPECT_TRUE(refuses(signsgd::kMean, 0xBF000000, 0x1F));
  EXPECT_TRUE(refuses(signsgd::kMean, 0x80000000, 0x1F));
  EXPECT_TRUE(refuses(signsgd::kMean, 0x7F800000, 0x1F));
  EXPECT_TRUE(refuses(signsgd::kMean, 0x7FC00000, 0x01));
  EXPECT_TRUE(refuses(signsgd::kMean, 0x7FC00001, 0x00));
  EXPECT_FALSE(refuses(signsgd::kMean, 0x7FC00000, 0x00));
  EXPECT_TRUE(refuses(signsgd::kNone, 0x3F000000, 0x1F));
  EXPECT_FALSE(refuses(signsgd::kNone, 0x3F800000, 0x1F));
  EXPECT_FALSE(refuses(signsgd::kNone, 0x7FC00000, 0x00));
}

TEST(Signsgd, TakesFloat32Only) {
  Args args{DType::kFloat64, {}};
  EXPECT_EQ(find_codec("signsgd", 7)->codec->check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
