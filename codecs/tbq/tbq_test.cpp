// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/tbq.hpp"

#include "codecs/common/testing/feedback.hpp"
#include "codecs/common/testing/schedules.hpp"
#include "codecs/tbq/warp.hpp"

namespace wirepress {
namespace {

using namespace feedback;

const std::array<int, kMaxParams> kRelative = {real_param(3, 0), tbq::kMean};
const std::array<int, kMaxParams> kOften = {real_param(5, -1), tbq::kMean};
const std::array<int, kMaxParams> kFixed = {real_param(3, -3), tbq::kOne};
const std::array<int, kMaxParams> kDense = {real_param(2, -4), tbq::kOne};

TEST(Tbq, KeepsTheLawOfFeedback) {
  check_law(Coder("tbq", kRelative), "3 means");
  check_law(Coder("tbq", kOften), "half a mean");
  check_law(Coder("tbq", kFixed), "3e-3");
  check_law(Coder("tbq", kDense), "2e-4");
}

TEST(Tbq, NanChunks) {
  check_nan_chunks(Coder("tbq", kRelative), tbq::kValues);
  check_nan_chunks(Coder("tbq", kFixed), tbq::kValues);
}

TEST(Tbq, SendsTauForWhatReachesIt) {
  const Floats values = gradient(10000, 5);
  for (const auto& params : {kFixed, kDense}) {
    const Coder coder("tbq", params);
    const float tau = tbq::Rule(coder.args()).tau;
    EXPECT_NEAR(static_cast<double>(tau), coder.args().real(0), coder.args().real(0) * 0x1p-16);
    const Floats decoded = coder.quantised(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const float expected = values[i] >= tau ? tau : values[i] <= -tau ? -tau : 0.0f;
      ASSERT_EQ(word(decoded[i]), word(expected)) << i;
    }
    EXPECT_EQ(coder.quantised(decoded), decoded);
  }
}

TEST(Tbq, SendsMeansForWhatReachesThem) {
  const Floats values = gradient(10000, 5);
  const Floats decoded = Coder("tbq", kRelative).quantised(values);
  for (size_t begin = 0; begin < values.size(); begin += tbq::kValues) {
    const size_t end = std::min(begin + tbq::kValues, values.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::fabs(double{values[i]});
    const double level = 3 * sum / static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) {
      const double size = std::fabs(double{values[i]});
      if (size > level * 1.0001) {
        ASSERT_NEAR(double{decoded[i]}, std::copysign(level, double{values[i]}), level * 1e-6);
      } else if (size < level * 0.9999) {
        ASSERT_EQ(word(decoded[i]), 0u);
      }
    }
  }
}

TEST(Tbq, TheSmallerForm) {
  const Coder coder("tbq", {real_param(1, 0), tbq::kOne});
  for (const size_t marked :
       {size_t{0}, size_t{1}, size_t{2}, size_t{511}, size_t{512}, size_t{4096}}) {
    Floats values(4096);
    for (size_t i = 0; i < marked; ++i) values[i * 4096 / std::max<size_t>(marked, 1)] = -2;
    const size_t expected = 4 + std::min<size_t>((marked + 1) / 2 * 4, 1024);
    EXPECT_EQ(coder.encode(values).size(), expected) << marked;
  }
}

Coded sum_of(const Coder& coder, const Kernel& kernel, const Coded& a, const Coded& b, size_t n) {
  Coded sum(coder.bound(4 * n));
  size_t written = 0;
  const Status status = kernel.add(nullptr, coder.args(), a, b, 4 * n, sum, &written);
  EXPECT_TRUE(status.ok()) << status.text();
  sum.resize(written);
  return sum;
}

// Sums of codes are the codes of sums, whatever the order, and exactly.
TEST(Tbq, CodesAdd) {
  for (const auto& params : {kFixed, kDense}) {
    const Coder coder("tbq", params);
    for (const size_t n : {size_t{0}, size_t{1}, size_t{33}, size_t{4096}, size_t{9001}}) {
      for (const int senders : {2, 3, 7, 127}) {
        if (senders == 127 && n > 4096) continue;
        Coded sum;
        Floats expected(n);
        for (int sender = 0; sender < senders; ++sender) {
          const Coded code = coder.encode(gradient(n, static_cast<uint64_t>(sender % 9)));
          sum = sender == 0 ? code : sum_of(coder, *coder.kernels().front(), sum, code, n);
          ASSERT_TRUE(
              coder.portable().decode_add(nullptr, coder.args(), code, bytes(expected)).ok());
        }
        for (const Kernel* kernel : coder.kernels()) {
          Floats decoded(n);
          ASSERT_TRUE(coder.decode(*kernel, sum, bytes(decoded)).ok());
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(word(decoded[i]), word(expected[i])) << senders << " of " << n << ": " << i;
        }
      }
    }
  }
}

TEST(Tbq, WhatCannotBeAdded) {
  const Coder coder("tbq", kFixed);
  const size_t n = 5000;
  Floats ones(n, 1.0f), spiked(n);
  spiked[4500] = std::numeric_limits<float>::infinity();
  Coded sum = coder.encode(ones);
  const Coded one = sum;
  for (int i = 1; i < 127; ++i) sum = sum_of(coder, coder.portable(), sum, one, n);
  Coded room(coder.bound(4 * n));
  size_t written = 0;
  const auto code_of = [&](const Coder& with, const Coded& a, const Coded& b, size_t size) {
    return coder.portable().add(nullptr, with.args(), a, b, size, room, &written).code();
  };
  EXPECT_EQ(code_of(coder, sum, one, 4 * n), Code::kUnsupported);  // 128 tau
  EXPECT_EQ(code_of(coder, one, Coded(one.begin(), one.end() - 1), 4 * n), Code::kCorrupt);
  const Coder relative("tbq", kRelative);
  EXPECT_EQ(code_of(relative, relative.encode(ones), relative.encode(ones), 4 * n),
            Code::kUnsupported);
  const Floats decoded =
      coder.decode(sum_of(coder, coder.portable(), sum, coder.encode(spiked), n), n);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(std::isnan(decoded[i]), i >= 4096);
}

// Values 1, -1 and so on of tau = 1, n = 40: two groups, the second not full.
TEST(Tbq, RefusesWhatNoEncoderWrites) {
  const auto refuses = [](int of, const std::vector<uint32_t>& words) {
    const auto data = std::as_bytes(std::span(words));
    return refused(Coder("tbq", {real_param(1, 0), of}), data, 4 * 40);
  };
  const auto one = [&](const std::vector<uint32_t>& words) { return refuses(tbq::kOne, words); };
  EXPECT_FALSE(one({0}));
  EXPECT_FALSE(one({1, 0x8027}));
  EXPECT_TRUE(one({1, 0x8028}));     // position 40
  EXPECT_TRUE(one({1, 0x18027}));    // half a word that is not 0
  EXPECT_TRUE(one({1}));             // ends early
  EXPECT_TRUE(one({1, 0x8027, 0}));  // or late
  EXPECT_FALSE(one({2, 0x00050004}));
  EXPECT_TRUE(one({2, 0x00040004}));   // twice
  EXPECT_TRUE(one({2, 0x00040005}));   // falling
  EXPECT_FALSE(one({2, 0x7005F004}));  // 8 and -8
  EXPECT_FALSE(one({6, 0x00010000, 0x00030002, 0x00050004}));
  EXPECT_TRUE(one({7, 0x00010000, 0x00030002, 0x00050004, 6}));  // planes are no larger
  EXPECT_FALSE(one({7, 0x10010000, 0x00030002, 0x00050004, 6}));
  EXPECT_FALSE(one({1 << 16, 3, 1, 0x80, 0x80}));
  EXPECT_TRUE(one({1 << 16, 3, 4, 0x80, 0x80}));   // the sign of a zero
  EXPECT_TRUE(one({1 << 16, 3, 1, 0x180, 0x80}));  // a value too many
  EXPECT_TRUE(one({1 << 16, 0, 0, 0, 0}));         // nothing
  EXPECT_TRUE(one({1 << 16 | 1, 3, 1, 0x80, 0x80}));
  EXPECT_FALSE(one({2 << 16, 3, 1, 1, 0x80, 0, 0x80}));
  EXPECT_TRUE(one({2 << 16, 3, 0, 1, 0x80, 0, 0x80}));  // the second plane is empty
  EXPECT_TRUE(one({8 << 16, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_FALSE(one({0xFFFFFFFF}));
  EXPECT_TRUE(one({0xFFFFFFFE}));
  const auto mean = [&](const std::vector<uint32_t>& words) { return refuses(tbq::kMean, words); };
  EXPECT_FALSE(mean({0, 0}));
  EXPECT_TRUE(mean({0, 0x3F800000}));  // a level for nothing
  EXPECT_FALSE(mean({1, 0x3F800000, 0x8027}));
  EXPECT_TRUE(mean({1, 0x00000000, 0x8027}));
  EXPECT_TRUE(mean({1, 0xBF800000, 0x8027}));
  EXPECT_TRUE(mean({1, 0x7F800000, 0x8027}));
  EXPECT_TRUE(mean({1, 0x3F800000, 0x9027}));  // 2
  EXPECT_TRUE(mean({2 << 16, 0x3F800000, 3, 1, 1, 0x80, 0, 0x80}));
  EXPECT_FALSE(mean({0xFFFFFFFF, 0x7FC00000}));
  EXPECT_TRUE(mean({0xFFFFFFFF, 0}));
}

TEST(Tbq, TheExampleOfTheSpecification) {
  const Coder coder("tbq", {real_param(5, -1), tbq::kOne});
  const Floats raw = {1.0f, -0.25f, 0.0f, -0.5f, -4.0f};
  const Coded code = coder.encode(raw);
  const uint8_t expected[] = {0x00, 0, 1, 0, 0x19, 0, 0, 0, 0x18, 0, 0, 0};
  ASSERT_EQ(code.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(code.data(), expected, sizeof(expected)), 0);
  const Coded sum = sum_of(coder, coder.portable(), code, coder.encode({1, 0, 0, 1, 0}), 5);
  const uint8_t added[] = {0x02, 0, 0, 0, 0x00, 0x10, 0x04, 0x80};
  ASSERT_EQ(sum.size(), sizeof(added));
  EXPECT_EQ(std::memcmp(sum.data(), added, sizeof(added)), 0);
}

TEST(Tbq, Parameters) {
  const Codec& codec = *find_codec("tbq", 3)->codec;
  Args args{DType::kFloat64, {real_param(3, 0), 0}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  for (const int tau : {0, real_param(9, -31), real_param(2, 30)}) {
    args = {DType::kFloat32, {tau, 0}};
    EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  }
}

TEST(Tbq, OnAGpuAnyOrderOfWarpsWillDo) {
  for (const int of : {tbq::kMean, tbq::kOne}) {
    Args args;
    args.value[tbq::kTau] = real_param(5, -1);
    args.value[tbq::kOf] = of;
    schedules::Schedules<tbq::WarpBlocks>("tbq", args, schedules::waves(350002, 1)).hold(10);
  }
}

}  // namespace
}  // namespace wirepress
