// SPDX-License-Identifier: Apache-2.0
// Prefix codes at their limits, and what decoders must refuse.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "base/kernel.hpp"

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
  const Args args{dtype, {}};
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    void* state = nullptr;
    EXPECT_TRUE(kernel->open(args, &state).ok());
    size_t written = 0;
    said = kernel->decode(state, args, code, *raw, &written).code();
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
  for (const size_t n : {2, 7, 8, 9, 63, 64, 65, 500, 2047, 2048, 2049, 40000}) {
    for (const uint32_t values : {1, 2, 3, 16, 200, 256}) {
      std::vector<uint32_t> words(n);
      uint32_t h = 1;
      for (uint32_t& word : words) {
        h = h * 1664525 + 1013904223;
        word = std::rotr(((h >> 8) % values) * ((h >> 24) % values) % 256 << 24 | 3, 1);
      }
      expect_round_trip(DType::kFloat32, bytes_of(words), 4 * n + 5);
    }
  }
}

TEST(Planes, NoiseCostsFiveBytes) {
  std::vector<uint32_t> words(50000);
  uint64_t h = 1;
  for (uint32_t& word : words) {
    h ^= h << 13, h ^= h >> 7, h ^= h << 17;
    word = static_cast<uint32_t>(h >> 20);
  }
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
    EXPECT_EQ(encode(DType::kFloat32, raw)[0], std::byte{0});
    expect_round_trip(DType::kFloat32, raw, size + 5);
  }
}

TEST(Planes, TheExampleOfTheSpecification) {
  std::vector<float> values(16, 1.0f);
  for (size_t i = 1; i < values.size(); i += 2) values[i] = 2.0f;
  Data expected = {std::byte{0}, std::byte{0}};
  for (int i = 0; i < 8; ++i) expected.insert(expected.end(), {std::byte{0x7F}, std::byte{0x80}});
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), {std::byte{2}, std::byte{0}});
  EXPECT_EQ(encode(DType::kFloat32, bytes_of(values)), expected);
}

// 16 elements of bfloat16, upper plane 8 times 1 and 2 by turns in codes of one bit.
Data small_code() {
  Data code = {std::byte{0}, std::byte{1}, std::byte{1}, std::byte{2}, std::byte{0x11}};
  for (int i = 0; i < 8; ++i)
    code.insert(code.end(), {std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}});
  for (int i = 0; i < 8; ++i) code.push_back(std::byte{0b10});
  code.insert(code.end(), {std::byte{2}, std::byte{0}});
  return code;
}

TEST(Planes, RefusesWhatNoEncoderWrites) {
  Data raw(32);
  const auto with = [&](size_t at, int value) {
    Data code = small_code();
    code[at] = static_cast<std::byte>(value);
    return decode(DType::kBfloat16, code, &raw);
  };
  EXPECT_EQ(with(0, 0), Code::kOk);
  EXPECT_EQ(raw[1], std::byte{0});  // exponent plane 1, turned right
  EXPECT_EQ(raw[3], std::byte{1});
  EXPECT_EQ(with(0, 2), Code::kCorrupt);     // neither lines nor all
  EXPECT_EQ(with(1, 3), Code::kCorrupt);     // no way to store a plane
  EXPECT_EQ(with(2, 2), Code::kCorrupt);     // first is last
  EXPECT_EQ(with(4, 0x12), Code::kCorrupt);  // lengths 2 and 1
  EXPECT_EQ(with(4, 0x10), Code::kCorrupt);
  EXPECT_EQ(with(4, 0xF1), Code::kCorrupt);
  EXPECT_EQ(with(5, 2), Code::kCorrupt);       // a stream's size
  EXPECT_EQ(with(36, 0x7F), Code::kCorrupt);   // far beyond
  EXPECT_EQ(with(37, 0b110), Code::kCorrupt);  // bits behind the last code
  EXPECT_EQ(with(45, 1), Code::kCorrupt);
}

TEST(Planes, TakesFloats) {
  Args args{DType::kInt32, {}};
  EXPECT_EQ(entry().codec->check(&args).code(), Code::kParameter);
  args.dtype = DType::kFloat64;
  EXPECT_TRUE(entry().codec->check(&args).ok());
}

}  // namespace
}  // namespace wirepress
