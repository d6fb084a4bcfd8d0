// SPDX-License-Identifier: Apache-2.0
// Every share of places that are set, every size of the last unit; the bound; what no encoder
// writes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/kernel.hpp"
#include "codecs/trits/units.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;
const Codec& codec() { return *find_codec("trits", 5)->codec; }
const Kernel& kernel() { return *find_codec("trits", 5)->kernels[0]; }

Data encode(const Data& raw) {
  Args args;
  Data code(codec().bound(args, raw.size()));
  size_t written = 0;
  EXPECT_TRUE(kernel().encode(nullptr, args, raw, code, &written).ok()) << raw.size();
  code.resize(written);
  return code;
}

Status decode(const Data& code, Data* raw) {
  size_t written = 0;
  const Status status = kernel().decode(nullptr, {}, code, *raw, &written);
  if (status.ok()) raw->resize(written);
  return status;
}

// Units as terngrad writes them.
Data units(size_t size, double share, unsigned seed) {
  Data raw(size);
  std::mt19937_64 random(seed);
  std::bernoulli_distribution there(share);
  for (size_t at = 0; at < size; at += trits::kUnit) {
    for (size_t i = 0; i < std::min(trits::kHeadSize, size - at); ++i)
      raw[at + i] = static_cast<std::byte>(random());
    for (size_t pair = 0; pair < trits::pairs_of(size - at); ++pair) {
      uint32_t words[2] = {};
      for (size_t i = 0; i < trits::kPlaces; ++i) words[0] |= uint32_t{there(random)} << i;
      words[1] = words[0] & static_cast<uint32_t>(random());
      std::memcpy(&raw[at + trits::kHeadSize + trits::kPairSize * pair], words, sizeof(words));
    }
  }
  return raw;
}

TEST(Trits, EveryShare) {
  for (const double share : {0.0, 0.0003, 0.005, 0.03, 0.1, 0.2, 0.26, 0.5, 0.9, 0.999, 1.0}) {
    const Data raw = units(20 * trits::kUnit + 500, share, 3);
    const Data code = encode(raw);
    Data back(raw.size());
    ASSERT_TRUE(decode(code, &back).ok()) << share;
    EXPECT_EQ(back, raw) << share;
    const double bits = share == 0 || share == 1
                            ? 0
                            : -share * std::log2(share) - (1 - share) * std::log2(1 - share);
    const double values = 4 * static_cast<double>(raw.size());
    // Elias-Fano is at most 0.6 bits a place above the entropy, a bitmap at most one bit a value.
    const double most = values * (share < 0.25 ? bits + 1.6 * share : 1 + share);
    EXPECT_LE(8 * static_cast<double>(code.size()), most + 8 * (4 + 8 * 5.0) * 21) << share;
  }
}

TEST(Trits, EverySizeAndCount) {
  for (size_t size = 0; size <= 2 * trits::kUnit + 30; ++size) {
    for (const double share : {0.02, 0.23, 0.5}) {
      const Data raw = units(size, share, static_cast<unsigned>(size));
      Data back(size + 9);
      ASSERT_TRUE(decode(encode(raw), &back).ok()) << size;
      ASSERT_EQ(back, raw) << size;
    }
  }
  for (size_t pairs = 1; pairs <= 8; ++pairs) {
    for (size_t count = 0; count <= trits::kPlaces * pairs; ++count) {
      Data raw(trits::kHeadSize + trits::kPairSize * pairs);
      for (size_t p = 0; p < count; ++p)
        raw[trits::kHeadSize + trits::kPairSize * (p / 32) + p % 32 / 8] |=
            static_cast<std::byte>(1u << p % 8);
      Data back(raw.size());
      ASSERT_TRUE(decode(encode(raw), &back).ok()) << pairs << " " << count;
      ASSERT_EQ(back, raw) << pairs << " " << count;
    }
  }
}

TEST(Trits, AnyBytes) {
  std::mt19937_64 random(5);
  for (size_t size = 0; size < 4000; size += 37) {
    Data raw(size);
    for (auto& byte : raw) byte = static_cast<std::byte>(random());
    const Data code = encode(raw);
    EXPECT_LE(code.size(), codec().bound({}, size));
    Data back(size);
    ASSERT_TRUE(decode(code, &back).ok()) << size;
    ASSERT_EQ(back, raw) << size;
  }
}

TEST(Trits, RefusesWhatNoEncoderWrites) {
  const auto refuses = [](std::initializer_list<unsigned> bytes, size_t room = 13) {
    Data code;
    for (const unsigned byte : bytes) code.push_back(static_cast<std::byte>(byte));
    Data raw(room);
    return decode(code, &raw).code() == Code::kCorrupt;
  };
  EXPECT_FALSE(refuses({13, 0, 0, 0x80, 0x3F, 2, 5, 0xF2, 2, 7}));
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 2, 5, 0xF2, 2, 7}, 12));      // no room
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 2, 5, 0xF2, 2}));             // no rest
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 2, 5, 0xF2, 2, 7, 0}));       // more than the rest
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 2, 5, 0xF2, 4, 7}));          // a third sign
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 2, 7, 0xF2, 2, 7}));          // a third place
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 34, 5, 0xF2, 2, 7}));         // more than 32 places
  EXPECT_TRUE(refuses({13, 0, 0, 0x80, 0x3F, 0x82, 0, 5, 0xF2, 2, 7}));    // a long count
  EXPECT_FALSE(refuses({13, 0, 0, 0, 0, 33, 1, 0, 0, 0, 2, 0, 0, 0, 7}));  // a sign of no place
  EXPECT_TRUE(refuses({13, 0, 0, 0, 0, 33, 3, 0, 0, 0, 2, 0, 0, 0, 7}));   // it has a code
  EXPECT_TRUE(refuses({}));
  EXPECT_FALSE(refuses({0}));
}

}  // namespace
}  // namespace wirepress
