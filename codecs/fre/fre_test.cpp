// SPDX-License-Identifier: Apache-2.0
// The error bound, value by value. By default over a sample of all 2^32 words that holds every
// exponent and both signs; with WPR_FRE_ALL=1 over all of them at m = 5 (ten minutes of a core).
// And kernels against each other.
#include "codecs/fre/fre.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codecs/common/testing/schedules.hpp"
#include "codecs/fre/warp.hpp"

namespace wirepress {
namespace {

struct Rule {
  int m;
  int round;
  int flush;
  int ways;
};

const Entry& entry() { return *find_codec("fre", 3); }

std::vector<const Kernel*> usable_kernels() {
  std::vector<const Kernel*> kernels(entry().kernels.begin(), entry().kernels.end());
  std::erase_if(kernels, [](const Kernel* kernel) { return !kernel->usable(); });
  return kernels;
}

class Fre {
 public:
  explicit Fre(const Rule& rule, const Kernel* kernel = entry().kernels.back(),
               DType dtype = DType::kFloat32)
      : kernel_(*kernel) {
    args_.dtype = dtype;
    args_.value = {rule.m, rule.round, rule.flush, rule.ways};
    EXPECT_TRUE(entry().codec->check(&args_).ok());
    EXPECT_TRUE(kernel_.open(args_, &state_).ok());
  }
  ~Fre() { kernel_.close(state_); }
  Fre(const Fre&) = delete;
  Fre& operator=(const Fre&) = delete;

  std::vector<std::byte> encode(ConstBytes raw) {
    std::vector<std::byte> code(entry().codec->bound(args_, raw.size()));
    size_t written = 0;
    const Status status = kernel_.encode(state_, args_, raw, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Status encode_into(ConstBytes raw, Bytes code) {
    size_t written = 0;
    return kernel_.encode(state_, args_, raw, code, &written);
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

template <class T>
ConstBytes bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
Bytes room_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// The bound of spec.md, in doubles, which hold every float32 and every difference of two neighbours
// exactly. `most`: fraction bits of the type. Empty: kept.
std::string broken_law(const Rule& rule, uint32_t word, uint32_t y_word, int most) {
  const float x = std::bit_cast<float>(word);
  const float y = std::bit_cast<float>(y_word);
  if (std::isnan(x))
    return std::isnan(y) && word >> 31 == y_word >> 31 ? "" : "a NaN is none, or turned";
  if (std::isinf(x)) return y_word == word ? "" : "an infinity changed";
  if ((word & fre::kInfinity) == 0)
    return y_word == (rule.flush ? 0 : word) ? "" : "a zero or denormal is not what it must be";
  if (!std::isfinite(y)) return "a finite value became none";
  if (word >> 31 != y_word >> 31) return "the sign turned";
  const double size = std::fabs(static_cast<double>(x));
  const double error = std::fabs(static_cast<double>(y) - static_cast<double>(x));
  if (rule.round == fre::kTruncate)
    return error < std::ldexp(size, -rule.m) && std::fabs(y) <= std::fabs(x) ? "" : "beyond 2^-m";
  const int kept = rule.m + (rule.round == fre::kMidpoint && rule.m < most ? 1 : 0);
  if (kept < 23 && (y_word & ((1u << (23 - kept)) - 1)) != 0) return "more mantissa bits than m";
  if (rule.m == most) return y_word == word ? "" : "changed";
  return error <= std::ldexp(size, -rule.m - 1) ? "" : "beyond 2^-(m+1)";
}

// What a value of exponent 1 to 254 is decoded to, after Q.
uint32_t reconstruct(const Rule& rule, uint32_t q, int most) {
  const uint32_t e = fre::exponent(q);
  const bool moved = rule.round == fre::kMidpoint && rule.m < most && e >= 1 && e <= 254;
  return moved ? q + (1u << (22 - rule.m)) : q;
}

// That `words` are decoded to what the quantiser makes of them; and, with `law`, that this keeps
// the bound. No ASSERT_EQ for each word: it would take most of the time of 2^32 of them.
void check_words(const Rule& rule, Fre* fre, const std::vector<uint32_t>& words, bool law) {
  const std::vector<std::byte> code = fre->encode(bytes_of(words));
  std::vector<uint32_t> decoded(words.size());
  const Status status = fre->decode(code, room_of(decoded));
  ASSERT_TRUE(status.ok()) << status.text();
  const fre::Quantiser quantise(rule.m, rule.round == fre::kNearest, rule.flush != 0);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t q = quantise(words[i]);
    const uint32_t y = decoded[i];
    if (y == reconstruct(rule, q, 23) &&
        (!law || (quantise(y) == q && broken_law(rule, words[i], y, 23).empty())))
      continue;
    FAIL() << std::hex << words[i] << " became " << y << ", m " << rule.m << ", round "
           << rule.round << ": " << broken_law(rule, words[i], y, 23);
  }
}

TEST(Fre, KeepsItsBoundForEveryKindOfWord) {
  const bool all = std::getenv("WPR_FRE_ALL") != nullptr;
  constexpr uint64_t kBlock = 1 << 16;
  const std::vector<int> sampled = {1, 2, 5, 6, 10, 16, 17, 22, 23};
  for (const Kernel* kernel : usable_kernels()) {
    const bool law = kernel == entry().kernels.back();  // the others give the same
    // Primes: they meet every exponent with many fractions. Simulations take fewer, for time.
    const std::string_view engine = kernel->engine;
    const uint64_t stride = engine == "rtl" ? 65521 : engine == "cuda" ? 32749 : 8191;
    for (const int m : all ? std::vector<int>{5} : sampled) {
      for (const Rule& rule :
           {Rule{m, 0, 0, 1}, Rule{m, 1, 0, 4}, Rule{m, 0, 1, 4}, Rule{m, 2, 0, 0}}) {
        Fre fre(rule, kernel);
        std::vector<uint32_t> words;
        for (uint64_t word = 0; word < uint64_t{1} << 32; word += all ? 1 : stride) {
          words.push_back(static_cast<uint32_t>(word));
          // The neighbourhood of every power of two and of infinity.
          if (!all && (word >> 23) != ((word + stride) >> 23))
            for (uint32_t near = 0; near < 9; ++near)
              words.push_back(static_cast<uint32_t>(((word >> 23) + 1) << 23) - 4 + near);
          if (words.size() < kBlock) continue;
          check_words(rule, &fre, words, law);
          words.clear();
        }
        check_words(rule, &fre, words, law);
        if (HasFatalFailure()) FAIL() << kernel->variant;
      }
    }
  }
}

// All of bfloat16, in every rounding.
TEST(Fre, KeepsItsBoundForEveryBfloat16) {
  constexpr int kMost = fre::kFractionBits16;
  std::vector<uint16_t> words(1 << 16), decoded(words.size());
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i * 40503);
  for (const Kernel* kernel : usable_kernels()) {
    for (int m = 1; m <= kMost; ++m) {
      for (const Rule& rule :
           {Rule{m, 0, 0, 1}, Rule{m, 1, 0, 4}, Rule{m, 0, 1, 0}, Rule{m, 2, 1, 1}}) {
        Fre fre(rule, kernel, DType::kBfloat16);
        const std::vector<std::byte> code = fre.encode(bytes_of(words));
        const Status status = fre.decode(code, room_of(decoded));
        ASSERT_TRUE(status.ok()) << kernel->variant << ": " << status.text();
        for (size_t i = 0; i < words.size(); ++i)
          ASSERT_EQ(broken_law(rule, uint32_t{words[i]} << 16, uint32_t{decoded[i]} << 16, kMost),
                    "")
              << kernel->variant << " " << std::hex << words[i] << " " << decoded[i];
        ASSERT_EQ(fre.encode(bytes_of(decoded)), code) << "encoding again";
      }
    }
  }
}

// ---- kernels against each other -------------------------------------------------------------

// Runs of values like those of a field, with what is rare mixed in by `kind`.
std::vector<uint32_t> some_words(std::mt19937* random, size_t n, int kind) {
  const auto any = [&] { return static_cast<uint32_t>((*random)()); };
  const auto below = [&](uint32_t limit) { return any() % limit; };
  std::vector<uint32_t> words(n);
  uint32_t e = 120;
  for (uint32_t& word : words) {
    const uint32_t fraction = any() & fre::kFraction;
    const uint32_t sign = below(2) << 31;
    const uint32_t rare = below(kind == 1 ? 40 : kind == 2 ? 3 : 1000000);
    e = std::clamp(e + below(5) - 2, 1u, 254u);
    if (kind == 3) e = below(256);
    word = sign | e << 23 | fraction;
    if (rare == 0) word = sign | (below(3) == 0 ? fraction : 0);
    if (rare == 1) word = any();
    if (rare == 2 && kind == 1) e = 1 + below(254);
    if (kind == 4 && below(3) != 0) word = 0;
    if (kind == 5 && below(500) != 0) word = &word > &words[0] ? (&word)[-1] : 0;
    if (kind == 6) word = 0xFF800000 | (fraction & below(2) * fre::kFraction);
  }
  return words;
}
constexpr int kKinds = 7;

TEST(Fre, KernelsAgree) {
  std::mt19937 random(5);
  for (const Kernel* kernel : usable_kernels()) {
    for (int m = 1; m <= 23; ++m) {
      for (const int round : {0, 1, 2}) {
        for (const int ways : {0, 1, 4}) {
          const Rule rule{m, round, static_cast<int>(random() % 2), ways};
          const bool is_short = m <= 7 && random() % 3 == 0;
          const DType dtype = is_short ? DType::kBfloat16 : DType::kFloat32;
          Fre reference(rule, entry().kernels.back(), dtype), fast(rule, kernel, dtype);
          for (const size_t n :
               {0, 1, 3, 15, 16, 17, 33, 64, 100, 257, 512, 700, 1024, 1100, 5000}) {
            const std::vector<uint32_t> words =
                some_words(&random, n, static_cast<int>(random() % kKinds));
            const ConstBytes raw = bytes_of(words).first(4 * n - (n > 1 ? random() % 4 : 0));
            const std::vector<std::byte> code = reference.encode(raw);
            ASSERT_EQ(code, fast.encode(raw)) << kernel->variant << " m " << m << " n " << n;
            std::vector<std::byte> expected(raw.size()), decoded(raw.size()), less(code.size());
            ASSERT_TRUE(reference.decode(code, expected).ok());
            const Status status = fast.decode(code, decoded);
            ASSERT_TRUE(status.ok()) << kernel->variant << " m " << m << " n " << n << " ways "
                                     << ways << ": " << status.text();
            ASSERT_EQ(expected, decoded) << kernel->variant << " m " << m << " n " << n;
            EXPECT_TRUE(fast.encode_into(raw, less).ok());
            if (code.empty()) continue;
            EXPECT_EQ(fast.encode_into(raw, Bytes(less).first(code.size() - 1)).code(),
                      Code::kDstTooSmall);
          }
        }
      }
    }
  }
}

TEST(Fre, KernelsAgreeOnWhatIsCorrupt) {
  std::mt19937 random(6);
  size_t n_refused = 0;
  for (const Kernel* kernel : usable_kernels()) {
    for (int k = 0; k < 4000; ++k) {
      const int m = 1 + k % 23;
      const Rule rule{m, k % 3, 0, k % 5 == 0 ? 4 : k % 5 == 1 ? 0 : 1};
      const DType dtype = m <= 7 && k % 2 == 0 ? DType::kBfloat16 : DType::kFloat32;
      Fre reference(rule, entry().kernels.back(), dtype), fast(rule, kernel, dtype);
      const std::vector<uint32_t> words = some_words(&random, 200 + random() % 2800, k % kKinds);
      std::vector<std::byte> code = reference.encode(bytes_of(words));
      if (k % 7 == 0) {
        for (std::byte& byte : code) byte = static_cast<std::byte>(random());
      } else if (k % 7 == 1) {
        code.resize(code.size() - random() % 9);
      } else {
        code[random() % code.size()] ^= static_cast<std::byte>(1 << random() % 8);
      }
      std::vector<std::byte> expected(4 * words.size()), decoded(expected.size());
      const bool refused = !reference.decode(code, expected).ok();
      n_refused += refused;
      ASSERT_EQ(refused, !fast.decode(code, decoded).ok())
          << kernel->variant << " m " << m << " k " << k;
      if (refused) continue;
      ASSERT_EQ(expected, decoded) << kernel->variant << " m " << m << " k " << k;
    }
  }
  EXPECT_GT(n_refused, 1000u);
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

void check_refusals(const Kernel* kernel) {
  Fre fre({1, 0, 0, 1}, kernel);
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

TEST(Fre, RefusesWhatNoEncoderWrites) {
  for (const Kernel* kernel : usable_kernels()) check_refusals(kernel);
}

TEST(Fre, RefusesWhatIsNoBfloat16) {
  for (const Kernel* kernel : usable_kernels()) {
    Fre fre({1, 0, 0, 1}, kernel, DType::kBfloat16);
    uint16_t out = 0;
    const Bytes room = std::as_writable_bytes(std::span(&out, 1));
    EXPECT_TRUE(fre.decode(from_bits("0101 00000000 00000000 1000000 0"), room).ok());
    EXPECT_EQ(out, 1);
    EXPECT_EQ(fre.decode(from_bits("0101 00000000 00000001 1000000 0"), room).code(),
              Code::kCorrupt);
  }
}

void check_sizes(const Rule& rule, const Kernel* kernel, size_t n, size_t framing) {
  Fre fre(rule, kernel);
  std::vector<uint32_t> words(n, 0x3F800000), out(n);
  const Bytes room = std::as_writable_bytes(std::span(out));
  const std::vector<std::byte> good = fre.encode(std::as_bytes(std::span(words)));
  EXPECT_TRUE(fre.decode(good, room).ok());
  for (size_t at = 0; at < framing; ++at) {
    for (const int delta : {1, 0x80, 0xFF}) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(delta);
      EXPECT_EQ(fre.decode(bad, room).code(), Code::kCorrupt) << kernel->variant << " " << at;
    }
  }
  for (size_t size = 0; size <= framing; ++size)
    EXPECT_EQ(fre.decode(ConstBytes(good).first(size), room).code(), Code::kCorrupt)
        << kernel->variant << " " << size;
}

TEST(Fre, RefusesStreamsThatDoNotFit) {
  for (const Kernel* kernel : usable_kernels()) {
    check_sizes({5, 0, 0, 4}, kernel, 100, 12);
    check_sizes({5, 0, 0, 0}, kernel, 5000, 8);
  }
}

// A stream of 1024 values is what a block of them is coded to.
TEST(Fre, StreamsOfChunksAreThoseOfBlocks) {
  std::mt19937 random(8);
  const std::vector<uint32_t> words = some_words(&random, 2500, 1);
  const ConstBytes raw = bytes_of(words);
  Fre chunks({5, 0, 0, 0}), one({5, 0, 0, 1});
  std::vector<std::byte> sizes, streams;
  for (size_t at = 0; at < words.size(); at += 1024) {
    const size_t n = std::min<size_t>(words.size() - at, 1024);
    const std::vector<std::byte> stream = one.encode(raw.subspan(4 * at, 4 * n));
    streams.insert(streams.end(), stream.begin(), stream.end());
    if (n < 1024) continue;  // the last stream takes the rest
    sizes.push_back(static_cast<std::byte>(stream.size()));
    sizes.push_back(static_cast<std::byte>(stream.size() >> 8));
  }
  sizes.insert(sizes.end(), streams.begin(), streams.end());
  EXPECT_EQ(chunks.encode(raw), sizes);
}

TEST(Fre, TakesFloat32AndBfloat16) {
  const Codec& codec = *entry().codec;
  Args args{DType::kFloat64, {5, 0, 0, 1}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  EXPECT_NE(std::string(codec.check(&args).text()).find("bx"), std::string::npos);
  args = {DType::kInt32, {5, 0, 0, 1}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  for (const int ways : {2, 3}) {
    args = {DType::kFloat32, {5, 0, 0, ways}};
    EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  }
  args = {DType::kBfloat16, {7, 0, 0, 1}};
  EXPECT_TRUE(codec.check(&args).ok());
  args = {DType::kBfloat16, {8, 0, 0, 1}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
}

TEST(Fre, OnAGpuAnyOrderOfWarpsWillDo) {
  for (const int ways : {0, 1, 4}) {
    Args args{DType::kFloat32, {5, fre::kNearest, 0, ways}};
    schedules::Schedules<FreWarps>("fre", args, schedules::waves(150003, 1)).hold(10);
  }
}

// Not the decoder's: a warp that sees a table of zeros goes on forever.
TEST(Fre, OnAGpuTheEncodersBarrierIsNeeded) {
  Args args{DType::kFloat32, {5, fre::kNearest, 0, fre::kChunks}};
  schedules::Schedules<FreWarps>("fre", args, schedules::waves(40003, 1)).need(1, 0);
}

}  // namespace
}  // namespace wirepress
