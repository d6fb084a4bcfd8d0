// SPDX-License-Identifier: Apache-2.0
// The error bound, value by value. By default over a sample of all 2^32 words that holds every
// exponent and both signs; with WPR_FRE_ALL=1 over all of them at m = 5 (minutes).
#include "codecs/fre/fre.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace wirepress {
namespace {

struct Rule {
  int m;
  int round;
  int flush;
  int ways;
};

class Fre {
 public:
  explicit Fre(const Rule& rule) : kernel_(*find_codec("fre", 3)->kernels.back()) {
    args_.dtype = DType::kFloat32;
    args_.value = {rule.m, rule.round, rule.flush, rule.ways};
    EXPECT_TRUE(find_codec("fre", 3)->codec->check(&args_).ok());
    EXPECT_TRUE(kernel_.open(args_, &state_).ok());
  }
  ~Fre() { kernel_.close(state_); }
  Fre(const Fre&) = delete;
  Fre& operator=(const Fre&) = delete;

  std::vector<std::byte> encode(ConstBytes raw) {
    std::vector<std::byte> code(find_codec("fre", 3)->codec->bound(args_, raw.size()));
    size_t written = 0;
    const Status status = kernel_.encode(state_, args_, raw, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Status decode(ConstBytes code, Bytes raw) {
    size_t written = 0;
    return kernel_.decode(state_, args_, code, raw, &written);
  }

 private:
  const Kernel& kernel_;
  Args args_;
  void* state_ = nullptr;
};

// The bound of spec.md, in doubles, which hold every float32 and every difference of two neighbours
// exactly. Empty: kept.
std::string broken_law(const Rule& rule, uint32_t word, uint32_t q) {
  const float x = std::bit_cast<float>(word);
  const float y = std::bit_cast<float>(q);
  if (std::isnan(x))
    return std::isnan(y) && word >> 31 == q >> 31 ? "" : "a NaN is none, or turned";
  if (std::isinf(x)) return q == word ? "" : "an infinity changed";
  if ((word & fre::kInfinity) == 0)
    return q == (rule.flush ? 0 : word) ? "" : "a zero or denormal is not what it must be";
  if (!std::isfinite(y)) return "a finite value became none";
  if (word >> 31 != q >> 31) return "the sign turned";
  const double size = std::fabs(static_cast<double>(x));
  const double error = std::fabs(static_cast<double>(y) - static_cast<double>(x));
  if (rule.round == fre::kTruncate)
    return error < std::ldexp(size, -rule.m) && std::fabs(y) <= std::fabs(x) ? "" : "beyond 2^-m";
  if ((q & ((1u << (23 - rule.m)) - 1)) != 0) return "more mantissa bits than m";
  return error <= std::ldexp(size, -rule.m - 1) ? "" : "beyond 2^-(m+1)";
}

void check_words(const Rule& rule, Fre* fre, const std::vector<uint32_t>& words) {
  const std::vector<std::byte> code = fre->encode(std::as_bytes(std::span(words)));
  std::vector<uint32_t> decoded(words.size());
  const Status status = fre->decode(code, std::as_writable_bytes(std::span(decoded)));
  ASSERT_TRUE(status.ok()) << status.text();
  const fre::Quantiser quantise(rule.m, rule.round == fre::kNearest, rule.flush != 0);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string broken = broken_law(rule, words[i], decoded[i]);
    ASSERT_EQ(broken, "") << std::hex << words[i] << " became " << decoded[i] << ", m " << rule.m;
    ASSERT_EQ(decoded[i], quantise(words[i])) << std::hex << words[i];
    ASSERT_EQ(decoded[i], quantise(decoded[i])) << std::hex << words[i];
  }
}

TEST(Fre, KeepsItsBoundForEveryKindOfWord) {
  const bool all = std::getenv("WPR_FRE_ALL") != nullptr;
  constexpr uint64_t kStride = 8191;  // prime: meets every exponent with many fractions
  constexpr uint64_t kBlock = 1 << 16;
  const std::vector<int> sampled = {1, 2, 5, 6, 10, 16, 17, 22, 23};
  for (const int m : all ? std::vector<int>{5} : sampled) {
    for (const Rule& rule : {Rule{m, 0, 0, 1}, Rule{m, 1, 0, 4}, Rule{m, 0, 1, 4}}) {
      Fre fre(rule);
      std::vector<uint32_t> words;
      for (uint64_t word = 0; word < uint64_t{1} << 32; word += all ? 1 : kStride) {
        words.push_back(static_cast<uint32_t>(word));
        // The neighbourhood of every power of two and of infinity.
        if (!all && (word >> 23) != ((word + kStride) >> 23))
          for (uint32_t near = 0; near < 9; ++near)
            words.push_back(static_cast<uint32_t>(((word >> 23) + 1) << 23) - 4 + near);
        if (words.size() < kBlock) continue;
        check_words(rule, &fre, words);
        words.clear();
      }
      check_words(rule, &fre, words);
      if (HasFatalFailure()) return;
    }
  }
}

// Against arithmetic that shares nothing with the kernel: ties go to even.
TEST(Fre, RoundsToNearestEven) {
  for (const int m : {1, 5, 10}) {
    const fre::Quantiser quantise(m, true, false);
    for (uint32_t word = 0x3F800000; word < 0x40800000; word += 997) {
      const double x = std::bit_cast<float>(word);
      const int scale = m - std::ilogb(x);
      const double expected = std::ldexp(std::nearbyint(std::ldexp(x, scale)), -scale);
      ASSERT_EQ(std::bit_cast<float>(quantise(word)), static_cast<float>(expected)) << x;
    }
    const uint32_t half = 1u << (22 - m);
    EXPECT_EQ(quantise(0x3F800000 + half), 0x3F800000u);
    EXPECT_EQ(quantise(0x3F800000 + 3 * half), 0x3F800000 + 4 * half);
  }
}

TEST(Fre, EdgesOfTheRange) {
  const fre::Quantiser nearest(5, true, false);
  const fre::Quantiser flushing(5, true, true);
  EXPECT_EQ(nearest(0x7F7FFFFF), 0x7F7C0000u);  // the largest would round to infinity
  EXPECT_EQ(nearest(0xFF7FFFFF), 0xFF7C0000u);
  EXPECT_EQ(nearest(0x7F800001), 0x7FC00000u);  // a NaN whose payload is cut stays one
  EXPECT_EQ(nearest(0xFFFFFFFF), 0xFFFC0000u);
  EXPECT_EQ(nearest(0x80000000), 0x80000000u);
  EXPECT_EQ(nearest(0x007FFFFF), 0x007FFFFFu);
  EXPECT_EQ(flushing(0x807FFFFF), 0u);
  EXPECT_EQ(flushing(0x80000000), 0u);
  EXPECT_EQ(flushing(0x00800000), 0x00800000u);
}

std::vector<std::byte> from_bits(const std::string& bits) {
  std::vector<std::byte> bytes;
  size_t n = 0;
  for (const char bit : bits) {
    if (bit == ' ') continue;
    if (n % 8 == 0) bytes.push_back(std::byte{0});
    if (bit == '1') bytes.back() |= static_cast<std::byte>(1 << n % 8);
    ++n;
  }
  return bytes;
}

TEST(Fre, TheExampleOfTheSpecification) {
  const std::vector<std::byte> code = from_bits(
      "011 00000 11111110 0  00  1 1 0 0 00010 1  0100 0  0100 1"
      "0101 01000011011010001000000 0  011 01001 10100001 0  0000");
  const float raw[] = {1.0f, 1.0f, -2.5f, 0.0f, -0.0f, 1e-40f, 100.3f};
  Fre fre({5, 0, 0, 1});
  EXPECT_EQ(fre.encode(std::as_bytes(std::span(raw))), code);
}

TEST(Fre, RefusesWhatNoEncoderWrites) {
  Fre fre({1, 0, 0, 1});
  const auto refused = [&](const char* bits, size_t n) {
    std::vector<uint32_t> out(n);
    return fre.decode(from_bits(bits), std::as_writable_bytes(std::span(out))).code() ==
           Code::kCorrupt;
  };
  EXPECT_FALSE(refused("011 0 10000000 0", 1));             // exponent 1: may be said this way
  EXPECT_TRUE(refused("011 0 00000000 0", 1));              // exponent 0
  EXPECT_TRUE(refused("10 1 0", 1));                        // difference 0 from exponent 0
  EXPECT_TRUE(refused("110 1 1 0", 1));                     // difference -1 from exponent 0
  EXPECT_FALSE(refused("110 0 1 0", 1));                    // exponent 1
  EXPECT_TRUE(refused("011 0 01111111 0  110 0 1 0", 2));   // exponent 254 and 1 more
  EXPECT_TRUE(refused("011 0 11111111 0  10 0 0", 2));      // 255 without the case for it
  EXPECT_FALSE(refused("011 0 11111111 0  110 1 0 0", 2));  // 255 - 1
  EXPECT_TRUE(refused("011 0 11111111 0  1111111 110 0 0", 2));
  EXPECT_TRUE(refused("00", 5));           // ends early
  EXPECT_TRUE(refused("00 000001", 1));    // padding
  EXPECT_TRUE(refused("00 000000 0", 1));  // a byte too many
  EXPECT_TRUE(refused("0", 0));            // codes for no value
  EXPECT_FALSE(refused("", 0));
}

TEST(Fre, RefusesStreamsThatDoNotFit) {
  Fre fre({5, 0, 0, 4});
  std::vector<uint32_t> words(100, 0x3F800000), out(100);
  const Bytes room = std::as_writable_bytes(std::span(out));
  const std::vector<std::byte> good = fre.encode(std::as_bytes(std::span(words)));
  EXPECT_TRUE(fre.decode(good, room).ok());
  for (const size_t at : {0, 3, 4, 8, 11}) {
    for (const int delta : {1, 0x80, 0xFF}) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(delta);
      EXPECT_EQ(fre.decode(bad, room).code(), Code::kCorrupt) << at;
    }
  }
  EXPECT_EQ(fre.decode(ConstBytes(good).first(11), room).code(), Code::kCorrupt);
}

TEST(Fre, TakesFloat32Only) {
  const Codec& codec = *find_codec("fre", 3)->codec;
  Args args{DType::kFloat64, {5, 0, 0, 1}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  args = {DType::kFloat32, {5, 0, 0, 2}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress
