// SPDX-License-Identifier: Apache-2.0
// What the sparse codecs promise alike: feedback, sums, and what is refused.
#include "codecs/common/testing/sparse.hpp"

#include "codecs/common/random.hpp"

namespace wirepress::sparse {
namespace {

constexpr const char* kCodecs[] = {"graddrop", "topk", "dgc"};
constexpr size_t kSizes[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 1000, 4096, 9001};

TEST(Sparse, RandomBits) {
  EXPECT_EQ(random_bits(0, 0), 0u);
  EXPECT_NE(random_bits(0, uint64_t{1} << 32), random_bits(0, 0));
  EXPECT_NE(random_bits(uint64_t{1} << 32, 0), random_bits(0, 0));
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) sum += random_bits(7, i);
  EXPECT_NEAR(sum / 10000 / 4294967296.0, 0.5, 0.01);
}

TEST(Sparse, SharesAreExactDecimals) {
  EXPECT_EQ(share_of(1000, real_param(1, -3)), 1u);
  EXPECT_EQ(share_of(1001, real_param(1, -3)), 2u);
  EXPECT_EQ(share_of(131072, real_param(1, -3)), 132u);
  EXPECT_EQ(share_of(10, real_param(3, -1)), 3u);
  EXPECT_EQ(share_of(10, real_param(1, 0)), 10u);
  EXPECT_EQ(share_of(0, real_param(1, 0)), 0u);
  EXPECT_EQ(share_of(1, real_param(1, -9)), 1u);
  EXPECT_EQ(share_of(UINT32_MAX, real_param(32767, -13)), 15u);
  EXPECT_EQ(share_of(UINT32_MAX, real_param(9999, -4)), 4294537799u);
}

TEST(Sparse, ParametersOutOfRange) {
  for (const char* name : kCodecs) {
    const Codec& codec = *find_codec(name, std::strlen(name))->codec;
    for (const int bad : {0, real_param(11, -1), real_param(9, -10), real_param(1, 1)}) {
      Args args{.dtype = DType::kFloat32, .value = {bad, real_param(1, -2)}};
      EXPECT_EQ(codec.check(&args).code(), Code::kParameter) << name << " " << bad;
    }
    Args args{.dtype = DType::kFloat64, .value = {real_param(1, -2), real_param(1, -2)}};
    EXPECT_EQ(codec.check(&args).code(), Code::kParameter) << name;
  }
}

bool finite(float x) { return magnitude(x) < kInfinity; }

// Feedback is an addition, encode() and a subtraction, bit for bit, on every kernel.
void check_feedback(Coder* plain, std::vector<Coder>* all, const Floats& x, const Floats& e) {
  Floats t(x.size());
  for (size_t i = 0; i < x.size(); ++i) t[i] = x[i] + e[i];
  const Data expected = plain->encode(t);
  const Floats decoded = plain->decode(expected, x.size());
  Floats rest(x.size());
  for (size_t i = 0; i < x.size(); ++i) rest[i] = finite(t[i]) ? t[i] - decoded[i] : 0.0f;
  for (Coder& coder : *all) {
    Floats residual = e;
    EXPECT_EQ(coder.encode_feedback(x, &residual), expected) << coder.variant();
    EXPECT_TRUE(same_bits(residual, rest)) << coder.variant();
  }
}

TEST(Sparse, FeedbackIsExact) {
  for (const char* name : kCodecs) {
    for (const char* ratio : {"0.001", "0.03", "0.6", "1"}) {
      std::vector<Coder> all = coders(name, {ratio});
      for (const size_t n : kSizes) {
        const Floats e = gradient(n, 99);
        for (const Floats& x : hard_blocks(n)) {
          check_feedback(&all.back(), &all, x, e);
          if (HasFailure()) FAIL() << name << " " << ratio << " " << n;
        }
      }
    }
  }
}

// A sample that misleads: all large values are where it does not look, or only where it does.
TEST(Sparse, FeedbackWithABadGuess) {
  constexpr size_t kN = 131072;
  for (const char* name : kCodecs) {
    std::vector<Coder> all = coders(name);
    for (const size_t apart : {16, 128, 256, 1000}) {
      for (const size_t run : {1, 16, 100}) {
        Floats x = gradient(kN, 5);
        for (size_t i = 0; i < kN; ++i) x[i] *= i % apart < run ? 1e3f : 1.0f;
        x[77] = -std::numeric_limits<float>::infinity();
        check_feedback(&all.back(), &all, x, gradient(kN, 6));
      }
    }
    ASSERT_FALSE(HasFailure()) << name;
  }
}

TEST(Sparse, ManyStepsLoseNothing) {
  constexpr size_t kN = 5000;
  for (const char* name : kCodecs) {
    for (Coder& coder : coders(name, {"0.01"})) {
      std::vector<double> given(kN), got(kN);
      Floats residual(kN);
      for (unsigned step = 0; step < 50; ++step) {
        // Multiples of 2^-12: sums of them are exact in float32.
        Floats x = gradient(kN, step);
        for (float& v : x) v = std::nearbyint(v * 4096.0f) / 4096.0f;
        const Floats sent = coder.decode(coder.encode_feedback(x, &residual), kN);
        for (size_t i = 0; i < kN; ++i) given[i] += static_cast<double>(x[i]);
        for (size_t i = 0; i < kN; ++i) got[i] += static_cast<double>(sent[i]);
      }
      for (size_t i = 0; i < kN; ++i)
        ASSERT_EQ(given[i], got[i] + static_cast<double>(residual[i])) << name << " " << i;
    }
  }
}

TEST(Sparse, DecodeAddIsAnAddition) {
  for (const char* name : kCodecs) {
    for (Coder& coder : coders(name, {"0.05"})) {
      for (const size_t n : kSizes) {
        for (const Floats& x : hard_blocks(n)) {
          const Data code = coder.encode(x);
          const Floats decoded = coder.decode(code, n);
          Floats sum = gradient(n, 4), expected = sum;
          for (size_t i = 0; i < n; ++i) expected[i] += decoded[i];
          ASSERT_TRUE(coder.decode_add(code, &sum).ok());
          ASSERT_TRUE(same_bits(sum, expected)) << name << " " << coder.variant() << " " << n;
        }
      }
    }
  }
}

TEST(Sparse, SumsOfCodes) {
  for (const char* name : kCodecs) {
    for (const char* ratio : {"0.01", "0.3", "0.7", "1"}) {
      for (Coder& coder : coders(name, {ratio})) {
        for (const size_t n : {0, 1, 2, 17, 64, 127, 1000}) {
          const std::vector<Floats> blocks = hard_blocks(n);
          for (size_t k = 0; k < blocks.size(); ++k) {
            const Floats& second = blocks[(k + 5) % blocks.size()];
            Floats opposite = blocks[k];
            for (float& x : opposite) x = -x;
            for (const Floats& other : {second, opposite}) {
              const Data a = coder.encode(blocks[k]), b = coder.encode(other);
              Floats expected = coder.decode(a, n);
              const Floats addend = coder.decode(b, n);
              for (size_t i = 0; i < n; ++i) expected[i] += addend[i];
              Data sum;
              ASSERT_TRUE(coder.add(a, b, 4 * n, &sum).ok());
              const Floats got = coder.decode(sum, n);
              for (size_t i = 0; i < n; ++i)
                ASSERT_TRUE(magnitude(got[i]) > kInfinity
                                ? magnitude(expected[i]) > kInfinity
                                : std::bit_cast<uint32_t>(got[i]) ==
                                      std::bit_cast<uint32_t>(expected[i]))
                    << name << " " << ratio << " " << n << " block " << k << " value " << i;
            }
          }
        }
      }
    }
  }
}

// Sums of sums grow to the dense form and stay within the bound.
TEST(Sparse, SumsOfMany) {
  constexpr size_t kN = 3000;
  for (const char* name : kCodecs) {
    Coder coder = std::move(coders(name, {"0.1"}).front());
    Data sum = coder.encode(Floats(kN));
    EXPECT_EQ(sum.size(), 4u);
    Floats expected(kN);
    for (unsigned k = 0; k < 100; ++k) {
      const Data code = coder.encode(gradient(kN, k));
      const Floats addend = coder.decode(code, kN);
      for (size_t i = 0; i < kN; ++i) expected[i] += addend[i];
      Data next;
      ASSERT_TRUE(coder.add(sum, code, 4 * kN, &next).ok());
      sum = next;
      ASSERT_TRUE(same_bits(coder.decode(sum, kN), expected)) << name << " " << k;
    }
    EXPECT_EQ(sum.size(), 4 + 4 * kN);
    EXPECT_EQ(coder.bound(4 * kN), 4 + 4 * kN);
  }
}

TEST(Sparse, SumsThatAreRefused) {
  for (Coder& coder : coders("topk", {"0.1"})) {
    const Data a = coder.encode(gradient(100, 1)), b = coder.encode(gradient(200, 1));
    Data sum;
    EXPECT_EQ(coder.add(a, b, 400, &sum).code(), Code::kCorrupt);
    EXPECT_EQ(coder.add(b, a, 400, &sum).code(), Code::kCorrupt);
    EXPECT_EQ(coder.add(a, a, 401, &sum).code(), Code::kUnsupported);
  }
}

TEST(Sparse, FeedbackRefusesBeforeItWrites) {
  for (const char* name : kCodecs) {
    const Entry& entry = *find_codec(name, std::strlen(name));
    for (const Kernel* kernel : entry.kernels) {
      if (!kernel->usable()) continue;
      const Floats x = gradient(100, 1);
      Floats residual = x;
      Data dst(403);
      Args args{.dtype = DType::kFloat32, .value = {real_param(1, -3), real_param(1, -2)}};
      void* state = nullptr;
      size_t written = 0;
      ASSERT_TRUE(kernel->open(args, &state).ok());
      const ConstBytes src = std::as_bytes(std::span(x));
      const Bytes rest = std::as_writable_bytes(std::span(residual));
      EXPECT_EQ(kernel->encode_feedback(state, args, src, rest, dst, &written).code(),
                Code::kDstTooSmall);
      dst.resize(404);
      EXPECT_EQ(kernel->encode_feedback(state, args, src, rest.first(396), dst, &written).code(),
                Code::kParameter);
      EXPECT_TRUE(same_bits(residual, x));
      kernel->close(state);
    }
  }
}

Data bytes(std::initializer_list<int> values) {
  Data result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

// Eight values, two of them sent: w = 2, 5 high bits, 4 low ones.
TEST(Sparse, RefusesWhatNoEncoderWrites) {
  const Data good = bytes({2, 0, 0, 0, 0, 0, 0x40, 0xC0, 0, 0, 0, 0x40, 0x05, 0x06});
  for (const char* name : kCodecs) {
    for (Coder& coder : coders(name)) {
      const auto refused = [&](size_t at, int value) {
        Data bad = good;
        bad[at] = static_cast<std::byte>(value);
        Floats sum(8);
        Data code;
        const bool corrupt = coder.try_decode(bad, 32).code() == Code::kCorrupt;
        EXPECT_EQ(coder.decode_add(bad, &sum).code() == Code::kCorrupt, corrupt);
        EXPECT_EQ(coder.add(bad, good, 32, &code).code() == Code::kCorrupt, corrupt);
        EXPECT_EQ(coder.add(good, bad, 32, &code).code() == Code::kCorrupt, corrupt);
        return corrupt;
      };
      EXPECT_EQ(coder.decode(good, 8), (Floats{0, 0, -3, 0, 0, 2, 0, 0}));
      EXPECT_FALSE(refused(13, 0x0E));  // 2 and 7
      EXPECT_TRUE(refused(12, 0x03));   // 2 and 1: falling
      EXPECT_TRUE(refused(12, 0x09));   // 2 and 9: out of range
      EXPECT_TRUE(refused(12, 0x0D));   // three positions
      EXPECT_TRUE(refused(12, 0x04));   // one
      EXPECT_TRUE(refused(12, 0x25));   // a bit after the last
      EXPECT_TRUE(refused(13, 0x16));   // a bit after the low parts
      EXPECT_TRUE(refused(0, 1));       // sizes
      EXPECT_TRUE(refused(0, 3));
      EXPECT_TRUE(refused(0, 8));
      EXPECT_TRUE(refused(0, 9));
      EXPECT_TRUE(refused(3, 0x80));
      Data bad = good;
      bad[12] = std::byte{0x03};
      bad[13] = std::byte{0x0E};  // 2 and 3
      EXPECT_EQ(coder.decode(bad, 8), (Floats{0, 0, -3, 2, 0, 0, 0, 0}));
      bad[13] = std::byte{0x0A};  // 2 and 2
      EXPECT_EQ(coder.try_decode(bad, 32).code(), Code::kCorrupt);
      bad = good;
      bad[7] = bad[6] = std::byte{0};
      EXPECT_EQ(coder.try_decode(bad, 32).code(), Code::kCorrupt);  // +0
      bad[7] = std::byte{0x80};
      EXPECT_EQ(coder.try_decode(bad, 32).code(), Code::kCorrupt);  // -0
    }
  }
}

}  // namespace
}  // namespace wirepress::sparse
