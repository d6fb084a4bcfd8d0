// SPDX-License-Identifier: Apache-2.0
// Every share of elements that are not zero, and every magnitude, on every kernel; steps against
// base/order.hpp; sums; the example of the specification.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/order.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;
const Entry& entry() { return *find_codec("sparse", 6); }

struct Open {
  Open(const Kernel& kernel, DType dtype) : kernel(kernel) {
    args.dtype = dtype;
    EXPECT_TRUE(kernel.open(args, &state).ok());
  }
  ~Open() { kernel.close(state); }
  Data encode(const Data& raw) {
    Data code(entry().codec->bound(args, raw.size()));
    size_t written = 0;
    EXPECT_TRUE(kernel.encode(state, args, raw, code, &written).ok());
    code.resize(written);
    return code;
  }
  Data decode(const Data& code, size_t size) {
    Data raw(size);
    size_t written = 0;
    const Status status = kernel.decode(state, args, code, raw, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    return raw;
  }
  const Kernel& kernel;
  Args args;
  void* state = nullptr;
};

DType dtype_of(size_t size) {
  return size == 1 ? DType::kInt8 : size == 2 ? DType::kInt16 : DType::kInt32;
}

// n elements of T, of which a share is not 0; magnitudes halve in frequency with every bit.
template <typename T>
Data elements(size_t n, double share, unsigned seed) {
  Data raw(n * sizeof(T));
  std::mt19937_64 random(seed);
  std::bernoulli_distribution there(share);
  for (size_t i = 0; i < n; ++i) {
    if (!there(random)) continue;
    const uint64_t draw = random() | 1;
    const T magnitude = static_cast<T>((random() | uint64_t{1} << 63) >>
                                       (63 - std::countr_zero(draw) % (8 * sizeof(T))));
    const T value = static_cast<T>(draw >> 60 & 1 ? 0 - magnitude : magnitude);
    std::memcpy(&raw[i * sizeof(T)], &value, sizeof(T));
  }
  return raw;
}

template <typename Function>
void for_all(Function function) {
  for (const size_t n : {1, 63, 64, 130, 5000, 65536, 65537, 140000})
    for (const double share : {0.0, 0.0005, 0.01, 0.06, 0.24, 0.26, 0.57, 0.98, 1.0})
      function(n, share);
}

template <typename T>
class SparseCodecOf : public testing::Test {};
using Types = testing::Types<uint8_t, uint16_t, uint32_t>;
TYPED_TEST_SUITE(SparseCodecOf, Types);

TYPED_TEST(SparseCodecOf, EveryShareComesBackFromEveryKernel) {
  using T = TypeParam;
  for_all([](size_t n, double share) {
    const Data raw = elements<T>(n, share, static_cast<unsigned>(n));
    Data first;
    for (const Kernel* kernel : entry().kernels) {
      if (!kernel->usable()) continue;
      Open open(*kernel, dtype_of(sizeof(T)));
      const Data code = open.encode(raw);
      if (first.empty()) first = code;
      ASSERT_TRUE(code == first) << kernel->variant << " " << n << " " << share;
      ASSERT_TRUE(open.decode(code, raw.size()) == raw) << kernel->variant << " " << n;
    }
  });
}

TYPED_TEST(SparseCodecOf, StepsAreThoseOfTheOrder) {
  using T = TypeParam;
  for_all([](size_t n, double share) {
    // Any bits, also NaNs and both zeros, some of them moved.
    const Data before = elements<T>(n, 0.9, 1), moves = elements<T>(n, share, 2);
    Data after = before, steps(before.size());
    take_steps<T>(moves.data(), after.size(), after.data());
    find_steps<T>(before.data(), after.data(), after.size(), steps.data());
    ASSERT_TRUE(steps == moves);
    for (const Kernel* kernel : entry().kernels) {
      if (!kernel->usable()) continue;
      Open open(*kernel, dtype_of(sizeof(T)));
      Data code(entry().codec->bound(open.args, after.size()));
      size_t written = 0;
      ASSERT_TRUE(kernel->encode_steps(open.state, open.args, before, after, code, &written).ok());
      code.resize(written);
      ASSERT_TRUE(code == open.encode(steps)) << kernel->variant << " " << n << " " << share;
      Data words = before;
      ASSERT_TRUE(kernel->decode_steps(open.state, open.args, code, words).ok());
      ASSERT_TRUE(words == after) << kernel->variant << " " << n << " " << share;
    }
  });
}

TYPED_TEST(SparseCodecOf, SumsAreThoseOfTheElements) {
  using T = TypeParam;
  for_all([](size_t n, double share) {
    const Data a = elements<T>(n, share, 3), b = elements<T>(n, 0.02, 4);
    Data sum(a.size());
    for (size_t i = 0; i < n; ++i) {
      const T s = static_cast<T>(load_word<T>(a.data(), i) + load_word<T>(b.data(), i));
      std::memcpy(&sum[i * sizeof(T)], &s, sizeof(T));
    }
    for (const Kernel* kernel : entry().kernels) {
      if (!kernel->usable()) continue;
      Open open(*kernel, dtype_of(sizeof(T)));
      const Data x = open.encode(a), y = open.encode(b);
      Data code(entry().codec->bound(open.args, a.size()));
      size_t written = 0;
      ASSERT_TRUE(kernel->add(open.state, open.args, x, y, a.size(), code, &written).ok());
      code.resize(written);
      ASSERT_TRUE(code == open.encode(sum)) << kernel->variant << " " << n << " " << share;
    }
  });
}

TEST(SparseCodec, AllWordsOf16BitsBecomeAllOthers) {
  Data before(2 * 65536), after(before.size());
  for (const uint16_t turn : {0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1234}) {
    for (size_t i = 0; i < 65536; ++i) {
      const uint16_t from = static_cast<uint16_t>(i), to = static_cast<uint16_t>(i ^ turn);
      std::memcpy(&before[2 * i], &from, 2);
      std::memcpy(&after[2 * i], &to, 2);
    }
    for (const Kernel* kernel : entry().kernels) {
      if (!kernel->usable()) continue;
      Open open(*kernel, DType::kInt16);
      Data code(entry().codec->bound(open.args, after.size())), words = before;
      size_t written = 0;
      ASSERT_TRUE(kernel->encode_steps(open.state, open.args, before, after, code, &written).ok());
      ASSERT_TRUE(
          kernel->decode_steps(open.state, open.args, ConstBytes(code).first(written), words).ok());
      ASSERT_TRUE(words == after);
    }
  }
}

TEST(SparseCodec, NeighboursInTheOrderOfFloatsAreOneStepApart) {
  EXPECT_EQ(order<uint16_t>(0x0000), 0);
  EXPECT_EQ(order<uint16_t>(0x8000), 0xFFFF);                       // -0
  EXPECT_EQ(order<uint16_t>(0x3F81) - order<uint16_t>(0x3F80), 1);  // 1 and the next
  EXPECT_EQ(order<uint16_t>(0xBF80) - order<uint16_t>(0xBF81), 1);  // -1 and the one below
  EXPECT_EQ(order<uint32_t>(0x80000001), 0xFFFFFFFE);
  EXPECT_EQ(order<uint8_t>(order<uint8_t>(0xFF)), 0xFF);
}

TEST(SparseCodec, TheExampleOfTheSpecification) {
  Data raw(2000), expected;
  raw[4] = std::byte{3};
  raw[1200] = raw[1201] = std::byte{0xFF};
  for (const int byte : {0x02, 0x09, 0x02, 0x58, 0x02, 0x01, 0x01, 0x01, 0x00})
    expected.push_back(static_cast<std::byte>(byte));
  for (const Kernel* kernel : entry().kernels) {
    if (!kernel->usable()) continue;
    Open open(*kernel, DType::kInt16);
    EXPECT_EQ(open.encode(raw), expected);
    EXPECT_EQ(open.decode(expected, raw.size()), raw);
  }
}

}  // namespace
}  // namespace wirepress
