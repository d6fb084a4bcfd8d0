// SPDX-License-Identifier: Apache-2.0
// The error bound, value by value, by every kernel. By default over a sample of all words that
// holds every exponent and both signs (of the 16-bit floats, all words); with WPR_BX_ALL=1 over all
// 2^32 words of float32 at m = 5 and m = 23 (minutes). And the kernels against each other over
// random patterns, which the shared suite does for float32 and a few m only.
#include "codecs/bx/bx.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "codecs/bx/warp.hpp"
#include "codecs/common/testing/schedules.hpp"

namespace wirepress {
namespace {

const Entry& entry() { return *find_codec("bx", 2); }

std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> usable;
  for (const Kernel* kernel : entry().kernels)
    if (kernel->usable()) usable.push_back(kernel);
  return usable;
}

Args args_of(DType dtype, int m, int round = bx::kNearest, int flush = 0) {
  Args args;
  args.dtype = dtype;
  args.value = {m, round, flush, 0};
  const Status status = entry().codec->check(&args);
  EXPECT_TRUE(status.ok()) << status.text();
  return args;
}

template <typename F>
constexpr DType kDType = DType::kFloat32;
template <>
constexpr DType kDType<bx::Float16> = DType::kFloat16;
template <>
constexpr DType kDType<bx::Bfloat16> = DType::kBfloat16;
template <>
constexpr DType kDType<bx::Float64> = DType::kFloat64;

// What open() made of a kernel that has one, for the last setting asked for.
void* state_of(const Kernel& kernel, const Args& args) {
  struct State {
    const Kernel* kernel = nullptr;
    Args args;
    void* state = nullptr;
    ~State() {
      if (kernel != nullptr) kernel->close(state);
    }
  };
  static State last;
  if (kernel.open == nullptr) return nullptr;
  if (last.kernel == &kernel && last.args.dtype == args.dtype && last.args.value == args.value)
    return last.state;
  if (last.kernel != nullptr) last.kernel->close(last.state);
  last.kernel = &kernel;
  last.args = args;
  EXPECT_TRUE(kernel.open(args, &last.state).ok());
  return last.state;
}

std::vector<std::byte> encode(const Kernel& kernel, const Args& args, ConstBytes raw) {
  std::vector<std::byte> code(entry().codec->bound(args, raw.size()));
  size_t written = 0;
  const Status status = kernel.encode(state_of(kernel, args), args, raw, code, &written);
  EXPECT_TRUE(status.ok()) << status.text();
  code.resize(written);
  return code;
}

template <typename Word>
Status decode(const Kernel& kernel, const Args& args, ConstBytes code, std::vector<Word>* raw) {
  size_t written = 0;
  return kernel.decode(state_of(kernel, args), args, code, std::as_writable_bytes(std::span(*raw)),
                       &written);
}

uint64_t random_word(uint64_t* state) {  // splitmix64
  uint64_t z = *state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The bound of spec.md; nullptr: kept. All in units in the last place of x: the difference of two
// neighbours' words is their distance in it, also across the power of 2 above x.
template <typename F>
const char* broken_law(const Args& args, bool lossless, typename F::Word word, typename F::Word q) {
  using Word = typename F::Word;
  if (lossless) return q == word ? nullptr : "not lossless";
  const int m = args.value[bx::kM];
  const auto size = static_cast<Word>(word & ~F::kSign);
  const auto q_size = static_cast<Word>(q & ~F::kSign);
  if (size <= F::kFraction)
    return q == (args.value[bx::kFlush] ? 0 : word) ? nullptr
                                                    : "a zero or denormal is not as it must be";
  if ((word ^ q) & F::kSign) return "the sign turned";
  if (size == F::kInfinity) return q == word ? nullptr : "an infinity changed";
  if (size > F::kInfinity) return q_size > F::kInfinity ? nullptr : "a NaN is none";
  if (q_size >= F::kInfinity) return "a finite value became none";
  const uint64_t x = uint64_t{F::kFraction} + 1 + (word & F::kFraction);
  const uint64_t error = q_size > size ? q_size - size : size - q_size;
  if (args.value[bx::kRound] == bx::kTruncate)
    return error << m < x && q_size <= size ? nullptr : "beyond 2^-m";
  return error << (m + 1) <= x ? nullptr : "beyond 2^-(m+1)";
}

template <typename F>
void check_words(const Kernel& kernel, const Args& args,
                 const std::vector<typename F::Word>& words) {
  const std::vector<std::byte> code = encode(kernel, args, std::as_bytes(std::span(words)));
  std::vector<typename F::Word> decoded(words.size());
  const Status status = decode(kernel, args, code, &decoded);
  ASSERT_TRUE(status.ok()) << status.text();
  const bx::Quantiser<F> quantise(bx::setting_of(args));
  const bool lossless = entry().codec->is_lossless(args);
  for (size_t i = 0; i < words.size(); ++i) {
    const char* broken = broken_law<F>(args, lossless, words[i], decoded[i]);
    if (!broken && decoded[i] != quantise(words[i])) broken = "not Q(x)";
    if (!broken && decoded[i] != quantise(decoded[i])) broken = "Q(Q(x)) is not Q(x)";
    ASSERT_EQ(broken, nullptr) << broken << std::hex << ": " << +words[i] << " became "
                               << +decoded[i] << ", m " << std::dec << args.value[bx::kM] << ", "
                               << kernel.variant;
  }
}

// Words `stride` apart from the first to the last, in blocks, and the neighbours of each power
// of 2.
template <typename F>
void check_all(const Kernel& kernel, const Args& args, uint64_t stride) {
  using Word = typename F::Word;
  constexpr size_t kBlock = 1 << 16;
  std::vector<Word> words;
  Word word = 0;
  bool last = false;
  while (!last) {
    words.push_back(word);
    const Word next = static_cast<Word>(word + stride);
    if (stride > 1 && (word & ~F::kFraction) != (next & ~F::kFraction))
      for (Word near = 0; near < 9; ++near)
        words.push_back(static_cast<Word>((next & ~F::kFraction) - 4 + near));
    last = next < word;
    word = next;
    if (words.size() < kBlock && !last) continue;
    check_words<F>(kernel, args, words);
    if (testing::Test::HasFatalFailure()) return;
    words.clear();
  }
}

const int kRounds[] = {bx::kNearest, bx::kTruncate, bx::kMidpoint};

TEST(Bx, KeepsItsBoundForEveryKindOfFloat32) {
  const bool all = std::getenv("WPR_BX_ALL") != nullptr;
  const std::vector<int> sampled = {1, 2, 5, 6, 7, 8, 15, 16, 22, 23};
  for (const Kernel* kernel : kernels()) {
    for (const int m : all ? std::vector<int>{5, 23} : sampled) {
      for (const int round : kRounds) {
        for (const int flush : {0, 1}) {
          if (all && (round != bx::kNearest || flush)) continue;
          check_all<bx::Float32>(*kernel, args_of(DType::kFloat32, m, round, flush),
                                 all ? 1 : 65521);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

template <typename F>
void check_sample(const std::vector<int>& ms, uint64_t stride) {
  for (const Kernel* kernel : kernels())
    for (const int m : ms)
      for (const int round : kRounds)
        for (const int flush : {0, 1}) {
          check_all<F>(*kernel, args_of(kDType<F>, m, round, flush), stride);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(Bx, KeepsItsBoundForEveryFloat16) { check_sample<bx::Float16>({1, 5, 9, 10}, 1); }
TEST(Bx, KeepsItsBoundForEveryBfloat16) { check_sample<bx::Bfloat16>({1, 5, 6, 7}, 1); }
TEST(Bx, KeepsItsBoundForEveryKindOfFloat64) {
  check_sample<bx::Float64>({1, 5, 31, 51, 52}, 0x000FF12345678901);
}

// Values of few exponents, zeros, runs, and anything at all: each group of another kind.
template <typename F>
std::vector<typename F::Word> any_words(size_t n, uint64_t seed) {
  using Word = typename F::Word;
  std::vector<Word> words(n);
  uint64_t state = seed;
  uint64_t kind = 0, base = 0, width = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i % 16 == 0) {
      kind = random_word(&state);
      base = random_word(&state);
      width = random_word(&state) % F::kExponentBits;
      if (i % 4096 == 0 && kind % 3 == 0) {
        i += std::min<size_t>(4096 * (kind >> 8 & 1) + 16 * (kind >> 16 & 63), n - i - 1) / 16 * 16;
      }
    }
    const uint64_t draw = random_word(&state);
    const Word exponent = static_cast<Word>(
        (base + (random_word(&state) & ((1u << width) - 1))) << F::kDigits & F::kInfinity);
    Word word = exponent | static_cast<Word>(draw & F::kFraction);
    if (kind & 0x10) word |= static_cast<Word>(draw >> 60 & 1 ? F::kSign : 0);
    if (kind & 0x20) word |= F::kSign;
    if ((kind & 0x40) && (draw >> 61 & 1)) word = 0;
    if ((kind & 0x380) == 0) word = 0;
    if ((kind & 0xF80) == 0x80) word = static_cast<Word>(draw);
    if ((kind & 0xF80) == 0x100) word = static_cast<Word>(draw & (F::kSign | F::kFraction));
    if ((kind & 0xF80) == 0x180) word = static_cast<Word>(draw & F::kSign);
    words[i] = word;
  }
  return words;
}

template <typename F>
void compare_kernels() {
  const Kernel& scalar = *entry().kernels.back();
  uint64_t seed = 1;
  for (int m = 1; m <= static_cast<int>(F::kDigits); ++m) {
    for (const int round : kRounds) {
      for (const int flush : {0, 1}) {
        const Args args = args_of(kDType<F>, m, round, flush);
        const size_t n = seed % 3 ? 3 * bx::kChunk : bx::kChunk + 1 + seed * 37 % 5000;
        const auto words = any_words<F>(n, ++seed);
        const std::vector<std::byte> code = encode(scalar, args, std::as_bytes(std::span(words)));
        std::vector<typename F::Word> expected(n), decoded(n);
        ASSERT_TRUE(decode(scalar, args, code, &expected).ok());
        for (const Kernel* kernel : kernels()) {
          ASSERT_EQ(encode(*kernel, args, std::as_bytes(std::span(words))), code)
              << kernel->variant << ", m " << m << ", round " << round << ", flush " << flush;
          ASSERT_TRUE(decode(*kernel, args, code, &decoded).ok());
          ASSERT_EQ(decoded, expected) << kernel->variant << ", m " << m;
        }
      }
    }
  }
}

TEST(Bx, KernelsAgreeOnFloat16) { compare_kernels<bx::Float16>(); }
TEST(Bx, KernelsAgreeOnBfloat16) { compare_kernels<bx::Bfloat16>(); }
TEST(Bx, KernelsAgreeOnFloat32) { compare_kernels<bx::Float32>(); }
TEST(Bx, KernelsAgreeOnFloat64) { compare_kernels<bx::Float64>(); }

// Damaged heads, bitmaps, headers and planes: the same verdict and the same values.
template <typename F>
void compare_on_damage() {
  const Kernel& scalar = *entry().kernels.back();
  uint64_t state = 7;
  for (const int m : {1, 5, static_cast<int>(F::kDigits)}) {
    for (const int round : {bx::kNearest, bx::kMidpoint}) {
      const Args args = args_of(kDType<F>, m, round);
      for (const size_t n : {size_t{40}, size_t{600}, bx::kChunk + 100}) {
        const auto words = any_words<F>(n, n);
        const std::vector<std::byte> code = encode(scalar, args, std::as_bytes(std::span(words)));
        for (int i = 0; i < 400; ++i) {
          std::vector<std::byte> bad = code;
          const size_t most = i % 2 ? bad.size() : std::min<size_t>(bad.size(), 64);
          for (uint64_t flips = 1 + random_word(&state) % 2; flips > 0; --flips)
            bad[random_word(&state) % most] ^= static_cast<std::byte>(1 << random_word(&state) % 8);
          std::vector<typename F::Word> expected(n), decoded(n);
          const Status status = decode(scalar, args, bad, &expected);
          EXPECT_TRUE(status.ok() || status.code() == Code::kCorrupt);
          for (const Kernel* kernel : kernels()) {
            ASSERT_EQ(decode(*kernel, args, bad, &decoded).code(), status.code())
                << kernel->variant << ", m " << m << ", " << n << ": " << status.text();
            if (!status.ok()) continue;
            ASSERT_EQ(decoded, expected) << kernel->variant << ", m " << m;
          }
        }
      }
    }
  }
}

TEST(Bx, KernelsAgreeOnWhatIsCorrupt) {
  compare_on_damage<bx::Float16>();
  compare_on_damage<bx::Bfloat16>();
  compare_on_damage<bx::Float32>();
  compare_on_damage<bx::Float64>();
}

// Against arithmetic that shares nothing with the kernels.
TEST(Bx, RoundsToNearestEvenAndToTheMiddle) {
  for (const unsigned m : {1u, 5u, 10u}) {
    const bx::Quantiser<bx::Float32> nearest({m, bx::kNearest, false});
    const bx::Quantiser<bx::Float32> midpoint({m, bx::kMidpoint, false});
    for (uint32_t word = 0x3F800000; word < 0x40800000; word += 997) {
      const double x = std::bit_cast<float>(word);
      const int scale = static_cast<int>(m) - std::ilogb(x);
      const double scaled = std::ldexp(x, scale);
      ASSERT_EQ(std::bit_cast<float>(nearest(word)),
                static_cast<float>(std::ldexp(std::nearbyint(scaled), -scale)));
      ASSERT_EQ(std::bit_cast<float>(midpoint(word)),
                static_cast<float>(std::ldexp(std::floor(scaled) + 0.5, -scale)));
    }
  }
}

TEST(Bx, EdgesOfTheRange) {
  const bx::Quantiser<bx::Float32> nearest({5, bx::kNearest, false});
  const bx::Quantiser<bx::Float32> flushing({5, bx::kNearest, true});
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

std::vector<std::byte> words16(std::initializer_list<int> words) {
  std::vector<std::byte> bytes;
  for (const int word : words) {
    bytes.push_back(static_cast<std::byte>(word & 0xFF));
    bytes.push_back(static_cast<std::byte>(word >> 8));
  }
  return bytes;
}

TEST(Bx, TheExampleOfTheSpecification) {
  std::vector<float> raw(16, 1.0f);
  raw[1] = -2.5f;
  raw[2] = 0.0f;
  raw[3] = 100.3f;
  const std::vector<std::byte> code =
      words16({0x800A, 0x937E, 2, 0, 8, 0, 2, 8, 0xFFF9, 0x000A, 0x0008});
  for (const Kernel* kernel : kernels())
    EXPECT_EQ(encode(*kernel, args_of(DType::kFloat32, 5), std::as_bytes(std::span(raw))), code);
}

TEST(Bx, ZerosCostTwoBytesAChunk) {
  const std::vector<float> raw(3 * bx::kChunk, 0.0f);
  for (const Kernel* kernel : kernels())
    EXPECT_EQ(encode(*kernel, args_of(DType::kFloat32, 5), std::as_bytes(std::span(raw))).size(),
              6u);
}

TEST(Bx, RefusesWhatNoEncoderWrites) {
  const auto refused = [](std::initializer_list<int> words, size_t n, int m = 1,
                          DType dtype = DType::kFloat32) {
    size_t bad = 0;
    for (const Kernel* kernel : kernels()) {
      std::vector<std::byte> out(n * dtype_size(dtype));
      const Status status = decode(*kernel, args_of(dtype, m), words16(words), &out);
      bad += status.code() == Code::kCorrupt;
    }
    EXPECT_TRUE(bad == 0 || bad == kernels().size());
    return bad > 0;
  };
  EXPECT_FALSE(refused({0x8002, 0x007F, 0}, 16));     // sixteen times 1.0
  EXPECT_FALSE(refused({0x0003, 1, 0x007F, 0}, 16));  // the same, not dense
  EXPECT_TRUE(refused({0x0003, 3, 0x007F, 0}, 16));   // a group that is not
  EXPECT_TRUE(refused({0x8002, 0x007F, 0}, 15));      // a 16th value
  EXPECT_FALSE(refused({0x8002, 0x107F, 0}, 15));     // zeros
  EXPECT_TRUE(refused({0x8001, 0x007F, 0}, 16));      // the head says less
  EXPECT_TRUE(refused({0x8003, 0x007F, 0}, 16));      // more than there is
  EXPECT_TRUE(refused({0x8003, 0x007F, 0, 0}, 16));   // more than the headers say
  EXPECT_TRUE(refused({0x8002, 0x007F, 0, 0}, 16));   // a word too many
  EXPECT_TRUE(refused({0x8002, 0x007F}, 16));         // no planes
  EXPECT_TRUE(refused({0x8001}, 16));                 // no header
  EXPECT_TRUE(refused({0x8000}, 16));
  EXPECT_TRUE(refused({}, 16));
  EXPECT_FALSE(refused({0}, 16));
  EXPECT_FALSE(refused({}, 0));
  EXPECT_TRUE(refused({0}, 0));
  EXPECT_TRUE(refused({0x8002, 0xC07F, 0}, 16));                             // sign 3
  EXPECT_TRUE(refused({0x800B, 0x097F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 16));  // w = 9
  EXPECT_FALSE(refused({0x800A, 0x087F, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 16));    // w = 8
  EXPECT_TRUE(refused({0x8008, 0x2001, 0, 0, 0, 0, 0, 0, 0}, 16, 7, DType::kBfloat16));
  EXPECT_FALSE(refused({0x8008, 0x2001, 0, 0, 0, 0, 0, 0, 0}, 16, 6, DType::kBfloat16));
  EXPECT_TRUE(refused({0x8002, 0x0020, 0}, 16, 1, DType::kFloat16));  // base 32 of 31
  EXPECT_FALSE(refused({0x8002, 0x001F, 0}, 16, 1, DType::kFloat16));
  EXPECT_TRUE(refused({0x8003, 0x0800, 0, 0}, 16, 1, DType::kFloat64));
  EXPECT_FALSE(refused({0x8003, 0x07FF, 0, 0}, 16, 1, DType::kFloat64));
  EXPECT_TRUE(refused({0x8003, 0x07FF, 0x100, 0}, 16, 1, DType::kFloat64));
}

TEST(Bx, ParametersByType) {
  const Codec& codec = *entry().codec;
  Args args{DType::kInt32, {5, 0, 0}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  args = {DType::kFloat32, {24, 0, 0}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  args = {DType::kBfloat16, {8, 0, 0}};
  EXPECT_EQ(codec.check(&args).code(), Code::kParameter);
  for (const auto& [dtype, digits] : {std::pair{DType::kBytes, 23},
                                      {DType::kFloat32, 23},
                                      {DType::kFloat64, 52},
                                      {DType::kBfloat16, 7},
                                      {DType::kFloat16, 10}}) {
    args = args_of(dtype, 0);
    EXPECT_EQ(args.value[bx::kM], digits);
    EXPECT_TRUE(codec.is_lossless(args));
    EXPECT_FALSE(codec.is_lossless(args_of(dtype, 5)));
    EXPECT_FALSE(codec.is_lossless(args_of(dtype, 0, bx::kNearest, 1)));
  }
}

TEST(Bx, OnAGpuAnyOrderOfWarpsWillDo) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const schedules::Schedules<bx::Warps> all("bx", args_of(dtype, 5), schedules::waves(150003, 1));
    all.hold(10);
    all.need(3, 3);
  }
}

}  // namespace
}  // namespace wirepress
