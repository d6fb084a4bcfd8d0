// SPDX-License-Identifier: Apache-2.0
// Error feedback, adding while expanding, and sums of frames, for every lossy codec of the registry
// that takes float32, alone and before a lossless one, on one thread and on several.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using Values = std::vector<float>;
using Frame = std::vector<uint8_t>;

Values gradient(size_t n, unsigned seed) {
  Values values(n);
  std::mt19937_64 random(seed);
  std::exponential_distribution<float> size(1000.0f);
  for (float& value : values) {
    const uint64_t draw = random();
    value = draw % 10 < 4 ? 0.0f : draw & 1024 ? size(random) : -size(random);
  }
  return values;
}

uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

class Door {
 public:
  Door(const std::string& recipe, const char* threads) {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    for (const auto& [key, value] :
         {std::pair{"block_size", "4096"}, {"threads", threads}, {"recipe", recipe.c_str()}})
      EXPECT_EQ(wpr_set(ctx_, key, value), WPR_OK) << wpr_error(ctx_);
  }
  ~Door() { wpr_free(ctx_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  Frame feedback(const Values& values, Values* residual) {
    return frame(values.size(), [&](void* dst, size_t cap, size_t* size) {
      return wpr_compress_feedback(ctx_, values.data(), residual->data(), values.size(), dst, cap,
                                   size);
    });
  }
  Frame compress(const Values& values) {
    const uint64_t n = values.size();
    return frame(n, [&](void* dst, size_t cap, size_t* size) {
      return wpr_compress_array(ctx_, values.data(), WPR_FLOAT32, WPR_NO_SHAPE, &n, dst, cap, size);
    });
  }
  Values decompress(const Frame& frame, size_t n) {
    Values values(n);
    size_t size = 0;
    EXPECT_EQ(wpr_decompress(ctx_, frame.data(), frame.size(), values.data(), 4 * n, &size), WPR_OK)
        << wpr_error(ctx_);
    EXPECT_EQ(size, 4 * n);
    return values;
  }
  void decompress_add(const Frame& frame, Values* values) {
    size_t n = 0;
    EXPECT_EQ(
        wpr_decompress_add(ctx_, frame.data(), frame.size(), values->data(), values->size(), &n),
        WPR_OK)
        << wpr_error(ctx_);
    EXPECT_EQ(n, values->size());
  }
  Frame feedback(const std::vector<uint16_t>& values, wpr_dtype dtype, Values* residual) {
    return frame(values.size(), [&](void* dst, size_t cap, size_t* size) {
      return wpr_compress_feedback_typed(ctx_, values.data(), dtype, residual->data(),
                                         values.size(), dst, cap, size);
    });
  }
  void decompress_add(const Frame& frame, wpr_dtype dtype, std::vector<uint16_t>* values) {
    size_t n = 0;
    EXPECT_EQ(wpr_decompress_add_typed(ctx_, frame.data(), frame.size(), values->data(), dtype,
                                       values->size(), &n),
              WPR_OK)
        << wpr_error(ctx_);
    EXPECT_EQ(n, values->size());
  }
  wpr_status add(const Frame& a, const Frame& b, size_t n, Frame* sum) {
    sum->resize(wpr_bound(ctx_, 4 * n));
    size_t size = 0;
    const wpr_status status =
        wpr_add(ctx_, a.data(), a.size(), b.data(), b.size(), sum->data(), sum->size(), &size);
    sum->resize(size);
    return status;
  }
  wpr_ctx* get() { return ctx_; }

 private:
  template <typename Make>
  Frame frame(size_t n, Make make) {
    Frame frame(wpr_bound(ctx_, 4 * n));
    size_t size = 0;
    EXPECT_EQ(make(frame.data(), frame.size(), &size), WPR_OK) << wpr_error(ctx_);
    frame.resize(size);
    return frame;
  }
  wpr_ctx* ctx_ = nullptr;
};

// Lossy codecs that take float32, alone and with zstd behind them; and one that is not lossy.
std::vector<std::string> recipes() {
  std::vector<std::string> result = {"zstd:1"};
  for (const Entry& entry : registry()) {
    Args args = default_args(*entry.codec, DType::kFloat32);
    if (entry.codec->lossless || (entry.codec->check && !entry.codec->check(&args).ok())) continue;
    result.push_back(entry.codec->name);
    result.push_back(std::string(entry.codec->name) + "+zstd:1");
  }
  return result;
}

constexpr size_t kN = 20011;  // 19 blocks and an odd rest

TEST(Gradient, FeedbackLosesNothing) {
  const Values g = gradient(kN, 1), e = gradient(kN, 2);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Frame first;
    for (const char* threads : {"1", "3"}) {
      Door door(recipe, threads);
      Values residual = e;
      const Frame frame = door.feedback(g, &residual);
      if (first.empty()) first = frame;
      ASSERT_EQ(frame, first) << "the bytes depend on the number of threads";
      const Values decoded = door.decompress(frame, kN);
      for (size_t i = 0; i < kN; ++i) {
        const float t = g[i] + e[i];
        ASSERT_EQ(bits(residual[i]), bits(t - decoded[i])) << i << ": " << t << " - " << decoded[i];
      }
    }
  }
}

TEST(Gradient, FeedbackIsTheCodeOfTheSum) {
  const Values g = gradient(kN, 3), e = gradient(kN, 4);
  Values sum(kN);
  for (size_t i = 0; i < kN; ++i) sum[i] = g[i] + e[i];
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "1");
    Values residual = e;
    const Frame a = door.feedback(g, &residual);
    const Frame b = door.compress(sum);
    if (a.size() != b.size()) continue;  // a block that did not shrink is raw in b only
    ASSERT_EQ(a, b);
  }
}

TEST(Gradient, BrokenValuesLeaveNoResidual) {
  Values g = gradient(kN, 5);
  g[100] = std::numeric_limits<float>::quiet_NaN();
  g[9000] = std::numeric_limits<float>::infinity();
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "1");
    Values residual(kN);
    const Values decoded = door.decompress(door.feedback(g, &residual), kN);
    for (const float value : residual) ASSERT_TRUE(std::isfinite(value));
    EXPECT_FALSE(std::isfinite(decoded[100]));
    EXPECT_FALSE(std::isfinite(decoded[9000]));
  }
}

TEST(Gradient, AddsWhileExpanding) {
  const Values g = gradient(kN, 6), start = gradient(kN, 7);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    for (const char* threads : {"1", "3"}) {
      Door door(recipe, threads);
      const Frame frame = door.compress(g);
      const Values decoded = door.decompress(frame, kN);
      Values sum = start;
      door.decompress_add(frame, &sum);
      for (size_t i = 0; i < kN; ++i) ASSERT_EQ(bits(sum[i]), bits(start[i] + decoded[i])) << i;
    }
  }
}

// What the sum is, each codec's document says and its own test proves; here: that it can be used.
// The sum has the blocks of its terms, which may be smaller than those of the context that adds.
TEST(Gradient, SumsOfSmallBlocksStayInTheirRoom) {
  constexpr size_t kValues = 1 << 16;
  std::vector<int32_t> a(kValues), b(kValues);
  std::mt19937 random(1);
  for (size_t i = 0; i < kValues; ++i) a[i] = static_cast<int32_t>(random());
  b.assign(a.rbegin(), a.rend());
  for (const char* threads : {"1", "3"}) {
    wpr_ctx *maker = nullptr, *adder = nullptr;
    ASSERT_EQ(wpr_create(&maker), WPR_OK);
    ASSERT_EQ(wpr_create(&adder), WPR_OK);
    ASSERT_EQ(wpr_set(maker, "recipe", "sparse"), WPR_OK);
    ASSERT_EQ(wpr_set(maker, "block_size", "1KiB"), WPR_OK);
    ASSERT_EQ(wpr_set(adder, "threads", threads), WPR_OK);
    const uint64_t n = kValues;
    const auto frame_of = [&](const std::vector<int32_t>& values) {
      std::vector<uint8_t> frame(wpr_bound(maker, 4 * n));
      size_t size = 0;
      EXPECT_EQ(wpr_compress_array(maker, values.data(), WPR_INT32, WPR_NO_SHAPE, &n, frame.data(),
                                   frame.size(), &size),
                WPR_OK);
      frame.resize(size);
      return frame;
    };
    const auto left = frame_of(a), right = frame_of(b);
    const auto sum_in = [&](size_t cap) {
      std::vector<uint8_t> sum(cap);  // to the byte, for the address sanitizer
      size_t size = 0;
      const wpr_status status = wpr_add(adder, left.data(), left.size(), right.data(), right.size(),
                                        sum.data(), sum.size(), &size);
      EXPECT_LE(size, sum.size());
      sum.resize(size);
      return std::pair(status, sum);
    };
    EXPECT_EQ(sum_in(wpr_bound(adder, 4 * n)).first, WPR_DST_TOO_SMALL) << wpr_error(adder);
    const auto [status, sum] = sum_in(left.size() + 4 * n);
    ASSERT_EQ(status, WPR_OK) << wpr_error(adder);
    std::vector<int32_t> back(kValues);
    size_t size = 0;
    ASSERT_EQ(wpr_decompress(adder, sum.data(), sum.size(), back.data(), 4 * n, &size), WPR_OK);
    for (size_t i = 0; i < kValues; ++i)
      ASSERT_EQ(static_cast<uint32_t>(back[i]),
                static_cast<uint32_t>(a[i]) + static_cast<uint32_t>(b[i]));
    wpr_free(maker);
    wpr_free(adder);
  }
}

TEST(Gradient, FramesAreAddedOrRefused) {
  const Values g = gradient(kN, 8), h = gradient(kN, 9);
  for (const std::string& recipe : recipes()) {
    SCOPED_TRACE(recipe);
    Door door(recipe, "2");
    const Frame a = door.compress(g), b = door.compress(h);
    Frame sum;
    const wpr_status status = door.add(a, b, kN, &sum);
    if (status == WPR_UNSUPPORTED) continue;
    ASSERT_EQ(status, WPR_OK) << wpr_error(door.get());
    const Values x = door.decompress(a, kN), y = door.decompress(b, kN);
    const Values z = door.decompress(sum, kN);
    double error = 0, size = 0;
    for (size_t i = 0; i < kN; ++i) {
      error += std::pow(double{z[i]} - (double{x[i]} + double{y[i]}), 2);
      size += std::pow(double{x[i]} + double{y[i]}, 2);
    }
    EXPECT_LE(error, 0.5 * size);  // topq keeps half of what two codes send
  }
}

// ---- 16 bits: what the casts mean is said here by arithmetic, not by the codecs that make them
// ----

struct Half {
  wpr_dtype dtype;
  int fraction, least;  // bits, and the exponent of the smallest normal number
  uint16_t infinity, nan;
};
constexpr Half kHalves[] = {{WPR_BFLOAT16, 7, -126, 0x7F80, 0x7FC0},
                            {WPR_FLOAT16, 10, -14, 0x7C00, 0x7E00}};

float value_of(const Half& half, uint16_t word) {
  const int exponent = (word & 0x7FFF) >> half.fraction,
            fraction = word & ((1 << half.fraction) - 1);
  const float sign = word >> 15 != 0 ? -1.0f : 1.0f;
  if ((word & 0x7FFF) > half.infinity) return std::numeric_limits<float>::quiet_NaN();
  if ((word & 0x7FFF) == half.infinity) return sign * std::numeric_limits<float>::infinity();
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(fraction), half.least - half.fraction);
  return sign * std::ldexp(static_cast<float>(fraction + (1 << half.fraction)),
                           half.least + exponent - 1 - half.fraction);
}

// To the nearest, ties to even.
uint16_t word_of(const Half& half, float value) {
  if (std::isnan(value)) return half.nan;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(double{value});
  if (std::isinf(value)) return sign | half.infinity;
  const int exponent = size == 0 ? half.least : std::max(std::ilogb(size), half.least);
  const double units = std::nearbyint(std::ldexp(size, half.fraction - exponent));
  const double word = units + std::ldexp(exponent - half.least, half.fraction);
  return sign | static_cast<uint16_t>(std::min<double>(word, half.infinity));
}

bool same(const Half& half, uint16_t a, uint16_t b) {  // any NaN is a NaN
  return a == b || ((a & 0x7FFF) > half.infinity && (b & 0x7FFF) > half.infinity);
}

std::vector<uint16_t> halves_of(const Half& half, const Values& values) {
  std::vector<uint16_t> words(values.size());
  for (size_t i = 0; i < words.size(); ++i) words[i] = word_of(half, values[i]);
  return words;
}
Values floats_of(const Half& half, const std::vector<uint16_t>& words) {
  Values values(words.size());
  for (size_t i = 0; i < words.size(); ++i) values[i] = value_of(half, words[i]);
  return values;
}

TEST(Gradient, HalvesMakeTheFrameOfTheirFloats) {
  const Values g = gradient(kN, 11), e = gradient(kN, 12);
  for (const Half& half : kHalves) {
    const std::vector<uint16_t> words = halves_of(half, g);
    const Values floats = floats_of(half, words);
    for (const std::string& recipe : recipes()) {
      SCOPED_TRACE(recipe);
      for (const char* threads : {"1", "3"}) {
        Door door(recipe, threads);
        Values residual = e, expected = e;
        const Frame frame = door.feedback(floats, &expected);
        ASSERT_EQ(door.feedback(words, half.dtype, &residual), frame);
        for (size_t i = 0; i < kN; ++i) ASSERT_EQ(bits(residual[i]), bits(expected[i])) << i;
      }
    }
  }
}

TEST(Gradient, HalvesAreAddedToAndRoundedOnce) {
  const Values g = gradient(kN, 13), start = gradient(kN, 14);
  for (const Half& half : kHalves) {
    const std::vector<uint16_t> before = halves_of(half, start);
    for (const std::string& recipe : recipes()) {
      SCOPED_TRACE(recipe);
      for (const char* threads : {"1", "3"}) {
        Door door(recipe, threads);
        const Frame frame = door.compress(g);
        const Values decoded = door.decompress(frame, kN);
        std::vector<uint16_t> sum = before;
        door.decompress_add(frame, half.dtype, &sum);
        for (size_t i = 0; i < kN; ++i) {
          const float expected = value_of(half, before[i]) + decoded[i];
          const unsigned mask = expected == 0 ? 0x7FFF : 0xFFFF;  // a -0 may stay one
          ASSERT_EQ(sum[i] & mask, word_of(half, expected) & mask) << i << ": " << expected;
        }
      }
    }
  }
}

// Of every size of a block's rest, at any address; and with all words, NaNs and infinities too.
TEST(Gradient, EveryHalfAndEveryLength) {
  for (const Half& half : kHalves) {
    std::vector<uint16_t> words(65536);
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i);
    const Values floats = floats_of(half, words);
    Door door("zstd:1", "1");
    Values residual(words.size());
    const Values decoded =
        door.decompress(door.feedback(words, half.dtype, &residual), floats.size());
    for (size_t i = 0; i < words.size(); ++i) {
      const float sum = floats[i] + 0.0f;  // +0 where both are zeros
      ASSERT_TRUE(std::isnan(sum) ? std::isnan(decoded[i]) : bits(decoded[i]) == bits(sum)) << i;
      ASSERT_EQ(bits(residual[i]), 0u) << i;
    }
    std::vector<uint16_t> sum(words.size(), 0x8000);  // -0
    door.decompress_add(door.compress(floats), half.dtype, &sum);
    for (size_t i = 0; i < words.size(); ++i) ASSERT_TRUE(same(half, sum[i], words[i])) << i;

    std::vector<std::byte> room(2 * 1200 + 1);
    for (size_t n = 0; n < 1200; n += n < 70 ? 1 : 97) {
      std::byte* const odd = room.data() + 1;
      std::memcpy(odd, words.data() + 0x3000, 2 * n);
      Values rest(n), expected(n);
      const Values some(floats.begin() + 0x3000, floats.begin() + 0x3000 + static_cast<long>(n));
      Door codec("bf16", "1");
      const Frame frame = codec.feedback(some, &expected);
      Frame typed(wpr_bound(codec.get(), 4 * n));
      size_t size = 0, n_values = 0;
      ASSERT_EQ(wpr_compress_feedback_typed(codec.get(), odd, half.dtype, rest.data(), n,
                                            typed.data(), typed.size(), &size),
                WPR_OK);
      typed.resize(size);
      ASSERT_EQ(typed, frame) << n;
      ASSERT_EQ(rest, expected) << n;
      ASSERT_EQ(wpr_decompress_add_typed(codec.get(), frame.data(), frame.size(), odd, half.dtype,
                                         n, &n_values),
                WPR_OK);
      ASSERT_EQ(n_values, n);
    }
  }
}

TEST(Gradient, HalvesMisused) {
  Door door("fre:m=5", "1");
  wpr_ctx* const ctx = door.get();
  const std::vector<uint16_t> g(100, 0x3F80);
  Values residual(100, 1.0f);
  const Values before = residual;
  std::vector<uint16_t> sum(100);
  Frame frame(wpr_bound(ctx, 400));
  size_t size = 0;
  const auto code = [&](wpr_dtype dtype, size_t cap) {
    return wpr_compress_feedback_typed(ctx, g.data(), dtype, residual.data(), 100, frame.data(),
                                       cap, &size);
  };
  for (const wpr_dtype dtype : {WPR_FLOAT64, WPR_INT16, WPR_BYTES, static_cast<wpr_dtype>(31)}) {
    EXPECT_EQ(code(dtype, frame.size()), WPR_PARAMETER);
    EXPECT_EQ(wpr_decompress_add_typed(ctx, frame.data(), 4, sum.data(), dtype, 100, &size),
              WPR_PARAMETER);
  }
  EXPECT_EQ(code(WPR_BFLOAT16, frame.size() - 1), WPR_DST_TOO_SMALL);
  EXPECT_EQ(residual, before) << "touched before it was sure to succeed";
  EXPECT_EQ(wpr_compress_feedback_typed(ctx, nullptr, WPR_BFLOAT16, residual.data(), 100,
                                        frame.data(), frame.size(), &size),
            WPR_PARAMETER);
  ASSERT_EQ(code(WPR_BFLOAT16, frame.size()), WPR_OK);
  const size_t coded = size;
  EXPECT_EQ(wpr_decompress_add_typed(ctx, frame.data(), coded, sum.data(), WPR_BFLOAT16, 99, &size),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(sum, std::vector<uint16_t>(100));
  EXPECT_EQ(
      wpr_decompress_add_typed(ctx, frame.data(), coded, sum.data(), WPR_FLOAT16, SIZE_MAX, &size),
      WPR_OK);
  ASSERT_EQ(wpr_set(ctx, "recipe", "auto"), WPR_OK);
  EXPECT_EQ(code(WPR_BFLOAT16, frame.size()), WPR_PARAMETER);
}

TEST(Gradient, MisuseIsRefused) {
  Door door("fre:m=5", "1");
  const Values g = gradient(100, 10);
  Values residual(100);
  Frame frame(wpr_bound(door.get(), 400) - 1), sum;
  size_t size = 0;
  EXPECT_EQ(wpr_compress_feedback(door.get(), g.data(), residual.data(), 100, frame.data(),
                                  frame.size(), &size),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(residual, Values(100)) << "touched before it was sure to succeed";
  ASSERT_EQ(wpr_set(door.get(), "recipe", "fre:m=23"), WPR_OK);
  const Frame bytes = [&] {
    Frame out(wpr_bound(door.get(), 400));
    EXPECT_EQ(wpr_compress(door.get(), g.data(), 400, out.data(), out.size(), &size), WPR_OK);
    out.resize(size);
    return out;
  }();
  EXPECT_EQ(wpr_decompress_add(door.get(), bytes.data(), bytes.size(), residual.data(), 100, &size),
            WPR_PARAMETER)
      << "bytes are no float32";
  ASSERT_EQ(wpr_set(door.get(), "recipe", "fre:m=5"), WPR_OK);
  const Frame a = door.compress(g);
  EXPECT_EQ(wpr_decompress_add(door.get(), a.data(), a.size(), residual.data(), 99, &size),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(door.add(a, a, 100, &sum), WPR_UNSUPPORTED);
  EXPECT_NE(std::string(wpr_error(door.get())).find("fre"), std::string::npos);
  EXPECT_EQ(door.add(a, door.compress(gradient(101, 1)), 101, &sum), WPR_PARAMETER);
}

}  // namespace
}  // namespace wirepress
