// SPDX-License-Identifier: Apache-2.0
// Tables at their limits, signs, differences, doubles, and what decoders must refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <vector>

#include "base/kernel.hpp"
#include "codecs/common/testing/schedules.hpp"
#include "codecs/planes/warp.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;
const Entry& entry() { return *find_codec("planes", 6); }

Data encode(DType dtype, const Data& raw) {
  Data first;
  const Args args{dtype, {}};
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    void* state = nullptr;
    EXPECT_TRUE(kernel->open(args, &state).ok());
    Data code(entry().codec->bound(args, raw.size()));
    size_t written = 0;
    EXPECT_TRUE(kernel->encode(state, args, raw, code, &written).ok());
    code.resize(written);
    EXPECT_TRUE(first.empty() || code == first) << kernel->variant;
    first = code;
    kernel->close(state);
  }
  return first;
}

Code decode(DType dtype, const Data& code, Data* raw) {
  Code said = Code::kOk;
  Args args{dtype, {}};
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    void* state = nullptr;
    EXPECT_TRUE(kernel->open(args, &state).ok());
    size_t written = 0;
    args.past_caches = false;
    said = kernel->decode(state, args, code, *raw, &written).code();
    // Past the caches, from the beginning of a line on and from elsewhere.
    args.past_caches = true;
    for (const size_t offset : {0, 1, 2, 16, 24, 60}) {
      Data room(raw->size() + 2 * 64, std::byte{0x5A});
      const size_t at = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64 + offset;
      const Bytes there = Bytes(room).subspan(at, raw->size());
      EXPECT_EQ(kernel->decode(state, args, code, there, &written).code(), said);
      if (said == Code::kOk) {
        EXPECT_TRUE(std::ranges::equal(there, *raw)) << kernel->variant;
        EXPECT_EQ(room[at + raw->size()], std::byte{0x5A}) << kernel->variant;
      }
    }
    kernel->close(state);
  }
  return said;
}

void expect_round_trip(DType dtype, const Data& raw, size_t most) {
  const Data code = encode(dtype, raw);
  EXPECT_LE(code.size(), most);
  Data back(raw.size());
  EXPECT_EQ(decode(dtype, code, &back), Code::kOk);
  EXPECT_TRUE(back == raw);
}

template <typename Word>
Data bytes_of(const std::vector<Word>& words) {
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

// Fibonacci counts give the longest Huffman codes: 30 values would need 29 bits.
TEST(Planes, CodesThatAreTooLongAreCut) {
  std::vector<uint16_t> words;
  uint64_t a = 1, b = 1;
  for (uint16_t value = 0; value < 30 && words.size() < 1000000; ++value) {
    words.insert(words.end(), a, static_cast<uint16_t>(value << 7 | 1));
    b += a;
    a = b - a;
  }
  const Data raw = bytes_of(words);
  expect_round_trip(DType::kBfloat16, raw, raw.size() / 5);
}

TEST(Planes, EveryValueOfEveryLength) {
  for (const size_t n : {2, 7, 8, 9, 63, 64, 65, 500, 2047, 2048, 2049, 16383, 16385, 40000}) {
    for (const uint32_t values : {1, 2, 3, 16, 200, 256}) {
      std::vector<uint32_t> words(n);
      uint32_t h = 1;
      for (uint32_t& word : words) {
        h = h * 1664525 + 1013904223;
        word = std::rotr(((h >> 8) % values) * ((h >> 24) % values) % 256 << 24 | 3, 1);
      }
      expect_round_trip(DType::kFloat32, bytes_of(words), 4 * n + 16);
    }
  }
}

// Every word of 16 bits, in order and shuffled: NaN of every payload, denormals, both zeros.
TEST(Planes, AllWordsOfSixteenBits) {
  std::vector<uint16_t> words(1 << 16);
  for (const uint32_t step : {1u, 40503u})
    for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
      for (uint32_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i * step);
      expect_round_trip(dtype, bytes_of(words), 2 * words.size() + 6);
    }
}

uint64_t noise(uint64_t* h) {
  *h ^= *h << 13, *h ^= *h >> 7, *h ^= *h << 17;
  return *h;
}

TEST(Planes, NoiseCostsAFewBytes) {
  std::vector<uint32_t> words(50000);
  uint64_t h = 1;
  for (uint32_t& word : words) word = static_cast<uint32_t>(noise(&h) >> 20);
  EXPECT_EQ(encode(DType::kFloat32, bytes_of(words)).size(), 200005u);
}

// 15 of 16 rows of an embedding's gradient are zero, the rest has exponents of one kind.
TEST(Planes, LeavesOutZeroLines) {
  std::vector<double> values(64000, 0);
  for (size_t i = 0; i < values.size(); i += 16 * 64)
    for (size_t k = 0; k < 64; ++k) values[i + k] = 1.0 + 1.0 / static_cast<double>(i + k + 3);
  const Data raw = bytes_of(values);
  expect_round_trip(DType::kFloat64, raw, raw.size() / 16);
}

// The last line may be shorter than what a bitmap costs.
TEST(Planes, KeepsAZeroLineThatSavesNothing) {
  for (const size_t size : {64 * 8 + 1, 64 * 16 + 2, 64 * 80 + 11}) {
    Data raw(size, std::byte{0});
    for (size_t i = 0; i < size / 64 * 64; ++i) raw[i] = static_cast<std::byte>(i * i * 31 + i / 7);
    EXPECT_EQ(encode(DType::kFloat32, raw)[0] & std::byte{1}, std::byte{0});
    expect_round_trip(DType::kFloat32, raw, size + 5);
  }
}

// Floats with noise in all but the exponents; these and the signs change slowly.
template <typename Word>
Data smooth(size_t n, unsigned fraction, uint64_t middle) {
  std::vector<Word> words(n);
  uint64_t h = 1;
  const unsigned width = 8 * sizeof(Word);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t noisy = noise(&h);
    const uint64_t exponent = middle + i / 23 % 40 + (noisy >> 60) % 2;
    const uint64_t sign = i / 300 % 2;
    words[i] = static_cast<Word>(sign << (width - 1) | exponent << fraction |
                                 (noisy & ((uint64_t{1} << fraction) - 1)));
  }
  return bytes_of(words);
}

TEST(Planes, TakesDifferencesAndSignsApart) {
  for (const size_t n : {64, 1000, 16384, 16385, 40000}) {
    for (const auto& [dtype, raw, most] :
         {std::tuple(DType::kBfloat16, smooth<uint16_t>(n, 7, 100), 0.68),
          std::tuple(DType::kFloat32, smooth<uint32_t>(n, 23, 100), 0.83),
          std::tuple(DType::kFloat64, smooth<uint64_t>(n, 52, 1000), 0.87)}) {
      const Data code = encode(dtype, raw);
      EXPECT_EQ(code[0], n < 500 ? code[0] : std::byte{6}) << n;
      expect_round_trip(
          dtype, raw,
          n < 500 ? raw.size() + 12 : static_cast<size_t>(most * double(raw.size())) + 60);
    }
  }
}

// Zeros between numbers, everywhere or in parts of a block, and elements of bytes that end early.
template <typename Word>
Data scattered(size_t n, uint64_t share, size_t tail) {
  std::vector<Word> words(n);
  uint64_t h = 5;
  for (size_t i = 0; i < n; ++i)
    if (const uint64_t noisy = noise(&h); noisy % 100 >= share || i / 5000 % 3 == 2)
      words[i] = static_cast<Word>(noisy >> 30 | 1);
  Data raw = bytes_of(words);
  raw.insert(raw.end(), tail, std::byte{7});
  return raw;
}

TEST(Planes, LeavesOutZerosBetweenNumbers) {
  for (const size_t n : {1, 8, 63, 65, 129, 1000, 16385, 50000}) {
    for (const uint64_t share : {1, 3, 10, 40, 97}) {
      const double most = 1 - static_cast<double>(share) / 100 * 0.6 + 0.06;
      const auto limit = [&](size_t size) {
        return n < 1000 ? size + 32 : static_cast<size_t>(most * static_cast<double>(size)) + 40;
      };
      const Data two = scattered<uint16_t>(n, share, 1), four = scattered<uint32_t>(n, share, 3),
                 eight = scattered<uint64_t>(n, share, 5);
      expect_round_trip(DType::kFloat16, two, limit(two.size()));
      expect_round_trip(DType::kFloat32, four, limit(four.size()));
      expect_round_trip(DType::kFloat64, eight, limit(eight.size()));
      if (n > 1000 && share >= 10) {
        EXPECT_NE(encode(DType::kFloat32, four)[0] & std::byte{8}, std::byte{0}) << n;
      }
    }
  }
}

// Zeros that the sample sees, and no others: the bitmap takes as much as a bit an element.
TEST(Planes, BoundHoldsWhereTheSampleMisleads) {
  std::vector<uint16_t> words(262144);
  uint64_t h = 9;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<uint16_t>(noise(&h) >> 20 | 1);
    if (i / 64 % 8 == 0 && i % 9 == 0) words[i] = 0;
  }
  const Data raw = bytes_of(words);
  expect_round_trip(DType::kBfloat16, raw, raw.size() + raw.size() / 16 + 200);
}

// Zeros, denormals, infinities, NaN and the largest numbers between numbers of one size.
TEST(Planes, DoublesOfEveryExponent) {
  for (const size_t every : {1, 3, 50, 9000}) {
    std::vector<uint64_t> words(20000);
    uint64_t h = 7;
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = noise(&h) >> 12 | uint64_t{1000 + i % 5} << 52 | (h & 1) << 63;
      constexpr uint64_t kOdd[] = {0,
                                   1,
                                   0x7FF0000000000000,
                                   0x7FF8000000000001,
                                   uint64_t{1} << 63,
                                   0xFFF0000000000001,
                                   0x0010000000000000,
                                   0x7FEFFFFFFFFFFFFF};
      if (i % every == 0) words[i] = kOdd[i / every % 8];
    }
    expect_round_trip(DType::kFloat64, bytes_of(words), 8 * words.size() + 15);
  }
}

// What the sample does not show: values in one chunk alone, which have no code.
TEST(Planes, ValuesThatTheSampleLacks) {
  std::vector<uint16_t> words(100000, 0x3F80);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<uint16_t>(0x3F80 + (i * i % 7 << 7) + i % 128);
  for (size_t i = 70; i < words.size(); i += 512) words[i] = static_cast<uint16_t>(i * 77);
  for (size_t i = 40000; i < 50000; ++i)
    if (i / 64 % 8 != 0) words[i] = static_cast<uint16_t>(i * i * 31);
  const Data raw = bytes_of(words);
  expect_round_trip(DType::kBfloat16, raw, raw.size() * 3 / 4);
}

TEST(Planes, TheExampleOfTheSpecification) {
  std::vector<float> values(16, 1.0f);
  for (size_t i = 1; i < values.size(); i += 2) values[i] = 2.0f;
  const std::vector<int> bytes = {0,    2,    0,    0, 0x11, 2, 0, 0, 0x11, 2, 0, 0,    0x11, 2,
                                  0x7F, 0x80, 0x22, 1, 2,    0, 2, 0, 2,    0, 1, 0x55, 0x55, 0};
  Data expected;
  for (const int b : bytes) expected.push_back(static_cast<std::byte>(b));
  EXPECT_EQ(encode(DType::kFloat32, bytes_of(values)), expected);
}

// The ten values of the specification's second example in the upper plane, zeros in the lower.
Data small_code() {
  const std::vector<int> bytes = {0, 1, 2, 5, 9, 0x23, 0x10, 0x30, 2, 0, 1, 0xB2, 0, 0x0A, 0x02, 8};
  Data code;
  for (const int b : bytes) code.push_back(static_cast<std::byte>(b));
  return code;
}

TEST(Planes, RefusesWhatNoEncoderWrites) {
  Data raw(20);
  const auto with = [&](size_t at, int value) {
    Data code = small_code();
    code[at] = static_cast<std::byte>(value);
    return decode(DType::kBfloat16, code, &raw);
  };
  EXPECT_EQ(with(0, 0), Code::kOk);
  constexpr int kValues[] = {7, 5, 7, 7, 9, 5, 7, 8, 7, 7};
  for (size_t i = 0; i < 10; ++i) {
    const int word = std::to_integer<int>(raw[2 * i]) | std::to_integer<int>(raw[2 * i + 1]) << 8;
    EXPECT_EQ(word, kValues[i] << 7);
  }
  EXPECT_EQ(with(0, 16), Code::kCorrupt);    // no such flag
  EXPECT_EQ(with(0, 8), Code::kCorrupt);     // no bitmap of elements
  EXPECT_EQ(with(0, 4), Code::kOk);          // differences
  EXPECT_EQ(with(0, 2), Code::kCorrupt);     // and no sign plane
  EXPECT_EQ(with(2, 3), Code::kCorrupt);     // no way to store a plane
  EXPECT_EQ(with(2, 1), Code::kCorrupt);     // a code without a table
  EXPECT_EQ(with(3, 10), Code::kCorrupt);    // first behind last
  EXPECT_EQ(with(5, 0x20), Code::kCorrupt);  // no escape
  EXPECT_EQ(with(5, 0x22), Code::kCorrupt);  // lengths that do not add up
  EXPECT_EQ(with(5, 0x2C), Code::kCorrupt);  // 12
  EXPECT_EQ(with(7, 0x03), Code::kCorrupt);  // none of the last value
  EXPECT_EQ(with(8, 4), Code::kCorrupt);     // no kind of chunk
  EXPECT_EQ(with(12, 4), Code::kCorrupt);    // bits behind the last value
  EXPECT_EQ(with(13, 0x1A), Code::kCorrupt);
  EXPECT_EQ(with(13, 0), Code::kCorrupt);  // bytes left over
  Data longer = small_code();
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode(DType::kBfloat16, longer, &raw), Code::kCorrupt);
}

TEST(Planes, EveryTruncationIsRefused) {
  for (const Data& raw : {smooth<uint64_t>(300, 52, 1000), scattered<uint64_t>(300, 30, 3)}) {
    const Data code = encode(DType::kFloat64, raw);
    Data back(raw.size());
    for (size_t size = 0; size < code.size(); ++size)
      ASSERT_EQ(
          decode(DType::kFloat64, {code.begin(), code.begin() + static_cast<long>(size)}, &back),
          Code::kCorrupt)
          << size;
  }
}

// Three elements of which one is there, and a bitmap that is too short, too long, or stored badly.
TEST(Planes, RefusesBadBitmapsOfElements) {
  Data raw(6);
  const auto decoded = [&](std::vector<int> bytes) {
    Data code;
    for (const int b : bytes) code.push_back(static_cast<std::byte>(b));
    return decode(DType::kBfloat16, code, &raw);
  };
  EXPECT_EQ(decoded({8, 0, 2, 0, 0, 0x80, 0x7E}), Code::kOk);
  EXPECT_EQ(raw, (Data{std::byte{0}, std::byte{0}, std::byte{0x40}, std::byte{0x3F}, std::byte{0},
                       std::byte{0}}));
  EXPECT_EQ(decoded({8, 1, 2, 2, 0, 0, 0x80, 0x7E}), Code::kOk);     // all of its bytes are 2
  EXPECT_EQ(decoded({8, 1, 3, 2, 1, 0, 0, 0x80, 0x7E}), Code::kOk);  // as bits
  // bits of a byte that is none
  EXPECT_EQ(decoded({8, 1, 3, 2, 2, 0, 0, 0x80, 0x7E}), Code::kCorrupt);
  EXPECT_EQ(decoded({8, 0, 0x0A, 0, 0, 0x80, 0x7E}), Code::kCorrupt);  // bits behind the last
  EXPECT_EQ(decoded({8, 0, 0}), Code::kOk);                            // none is there
  EXPECT_EQ(decoded({10, 0, 0}), Code::kCorrupt);                      // and has signs
  EXPECT_EQ(decoded({8, 3, 2, 0, 0, 0x80, 0x7E}), Code::kCorrupt);     // no way to store it
  EXPECT_EQ(decoded({8, 0, 3, 0, 0, 0x80, 0x7E}), Code::kCorrupt);     // two, and one follows
  EXPECT_EQ(decoded({8}), Code::kCorrupt);
}

// Codes of every part of the format, by warps in any order: zeros left out in lines and between
// numbers, signs and differences, values that have no code.
TEST(Planes, OnAGpuAnyOrderOfWarpsWillDo) {
  for (const auto& [dtype, raw] : {std::tuple(DType::kFloat32, smooth<uint32_t>(40000, 23, 100)),
                                   std::tuple(DType::kBfloat16, smooth<uint16_t>(20000, 7, 100)),
                                   std::tuple(DType::kFloat64, smooth<uint64_t>(17000, 52, 1000)),
                                   std::tuple(DType::kFloat32, scattered<uint32_t>(40000, 30, 3)),
                                   std::tuple(DType::kFloat16, scattered<uint16_t>(40000, 97, 1)),
                                   std::tuple(DType::kFloat64, scattered<uint64_t>(20000, 40, 5)),
                                   std::tuple(DType::kFloat32, schedules::waves(100000, 1))}) {
    Args args;
    args.dtype = dtype;
    schedules::Schedules<planes::Warps>("planes", args, raw).hold(2);
  }
}

// Of the encoder: what is counted is cleared before and there behind, what a warp chooses follows
// from the signs, chunks know their number. Of the decoder: sums, and the bytes that they are of.
TEST(Planes, OnAGpuNoBarrierCanBeMissing) {
  Args args;
  args.dtype = DType::kFloat32;
  schedules::Schedules<planes::Warps>("planes", args, smooth<uint32_t>(40000, 23, 100)).need(8, 2);
}

// In the launches of an encoder, too, a code that is a byte too long is said to be.
TEST(Planes, OnAGpuRoomIsNotExceeded) {
  for (const Data& raw : {smooth<uint64_t>(3000, 52, 1000), scattered<uint64_t>(700, 30, 3),
                          Data(5000, std::byte{0}), Data(7, std::byte{3})}) {
    Args args;
    args.dtype = DType::kFloat64;
    const Data code = encode(args.dtype, raw);
    for (size_t room = 0; room < code.size(); room += 1 + room / 9) {
      Data made;
      const Status status = schedules::Run<planes::Warps>(args, 0, 0).encode(raw, room, &made);
      EXPECT_EQ(status.code(), Code::kDstTooSmall) << room << " of " << code.size();
    }
  }
}

TEST(Planes, TakesFloats) {
  Args args{DType::kInt32, {}};
  EXPECT_EQ(entry().codec->check(&args).code(), Code::kParameter);
  args.dtype = DType::kFloat64;
  EXPECT_TRUE(entry().codec->check(&args).ok());
}

}  // namespace
}  // namespace wirepress
