// SPDX-License-Identifier: Apache-2.0
// The encoders of rtl/lz: the library and the core read every code, its size is bounded, and pauses
// change none of its bytes.
//
// The decoders of rtl/lz against damaged codes: every truncation of small ones, and mutations of
// others, with good ones between. Each is refused or expands to what the format says, in a number
// of clocks that follows from its size and the room. The format, and not the processor's library,
// is the measure, which also refuses what breaks the rules for encoders; what that takes, the core
// takes with the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "base/kernel.hpp"
#include "engines/rtl/opened.hpp"
#include "engines/rtl/simulation.hpp"

namespace wirepress {
namespace {

using rtl::Opened;
using Buffer = std::vector<std::byte>;

// What a code expands to by its specification (codecs/NAME/spec.md); false: refused.
using Reference = bool (*)(ConstBytes code, size_t most, Buffer* out);

unsigned number(ConstBytes code, size_t at) { return std::to_integer<unsigned>(code[at]); }

bool copy_match(size_t offset, size_t size, size_t most, Buffer* out) {
  if (offset == 0 || offset > out->size() || size > most - out->size()) return false;
  for (size_t i = 0; i < size; ++i) out->push_back((*out)[out->size() - offset]);
  return true;
}

bool copy_literals(ConstBytes code, size_t size, size_t most, size_t* at, Buffer* out) {
  if (size > code.size() - *at || size > most - out->size()) return false;
  const auto* from = code.data() + *at;
  out->insert(out->end(), from, from + size);
  *at += size;
  return true;
}

bool lz4_length(ConstBytes code, size_t* at, size_t* length) {
  if (*length != 15) return true;
  for (;;) {
    if (*at == code.size()) return false;
    const unsigned byte = number(code, (*at)++);
    *length += byte;
    if (byte != 255) return true;
  }
}

bool lz4_expand(ConstBytes code, size_t most, Buffer* out) {
  size_t at = 0;
  while (at < code.size()) {
    const unsigned token = number(code, at++);
    size_t literals = token >> 4, match = token & 15;
    if (!lz4_length(code, &at, &literals)) return false;
    if (!copy_literals(code, literals, most, &at, out)) return false;
    if (at == code.size()) return true;
    if (code.size() - at < 2) return false;
    const size_t offset = number(code, at) + 256 * number(code, at + 1);
    at += 2;
    if (!lz4_length(code, &at, &match)) return false;
    if (!copy_match(offset, match + 4, most, out)) return false;
  }
  return false;
}

bool snappy_size(ConstBytes code, size_t* at, size_t* size) {
  *size = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (*at == code.size()) return false;
    const size_t byte = number(code, (*at)++);
    *size |= (byte & 127) << shift;
    if (byte < 128) return *size <= UINT32_MAX;
  }
  return false;
}

// A little-endian number of so many bytes.
bool snappy_number(ConstBytes code, size_t n_bytes, size_t* at, size_t* value) {
  *value = 0;
  if (n_bytes > code.size() - *at) return false;
  for (size_t i = 0; i < n_bytes; ++i) *value |= size_t{number(code, (*at)++)} << 8 * i;
  return true;
}

bool snappy_expand(ConstBytes code, size_t most, Buffer* out) {
  size_t at = 0, all = 0;
  if (!snappy_size(code, &at, &all) || all > most) return false;
  while (at < code.size()) {
    const unsigned tag = number(code, at++), high = tag >> 2;
    size_t value = 0;
    if ((tag & 3) == 0) {
      if (!snappy_number(code, high < 60 ? 0 : high - 59, &at, &value)) return false;
      if (!copy_literals(code, (high < 60 ? high : value) + 1, all, &at, out)) return false;
      continue;
    }
    constexpr size_t kOffsetSize[] = {0, 1, 2, 4};
    if (!snappy_number(code, kOffsetSize[tag & 3], &at, &value)) return false;
    if ((tag & 3) == 1) value += size_t{high >> 3} << 8;
    if (value >= 65536) return false;  // the core's limit
    if (!copy_match(value, (tag & 3) == 1 ? (high & 7) + 4 : high + 1, all, out)) return false;
  }
  return out->size() == all;
}

struct Codes {
  const char* name;
  const char* variant;  // of the engine rtl
  Reference expand;
};
constexpr Codes kCodes[] = {{"lz4", "verilator", lz4_expand},
                            {"lz4", "verilator16", lz4_expand},
                            {"snappy", "verilator", snappy_expand},
                            {"snappy", "verilator16", snappy_expand}};

// Repeats near and far, runs, and bytes that repeat nothing.
Buffer bytes(size_t n, std::mt19937_64* random) {
  Buffer data;
  while (data.size() < n) {
    const size_t size = 1 + (*random)() % ((*random)() % 8 == 0 ? 400 : 24);
    const size_t offset = 1 + (*random)() % ((*random)() % 2 == 0 ? 12 : 3000);
    if ((*random)() % 2 == 0 && offset <= data.size()) {
      for (size_t i = 0; i < size; ++i) data.push_back(data[data.size() - offset]);
    } else {
      for (size_t i = 0; i < size; ++i) data.push_back(static_cast<std::byte>((*random)()));
    }
  }
  data.resize(n);
  return data;
}

class Lz : public testing::TestWithParam<Codes> {
 protected:
  void SetUp() override {
    const Entry* entry = find_codec(GetParam().name, std::strlen(GetParam().name));
    if (entry == nullptr) GTEST_SKIP() << "built without " << GetParam().name;
    codec = entry->codec;
    for (const Kernel* kernel : entry->kernels) {
      if (std::string_view(kernel->engine) != "rtl")
        library = kernel;
      else if (std::string_view(kernel->variant) == GetParam().variant)
        core = kernel;
    }
    if (core == nullptr) GTEST_SKIP() << "built without Verilator";
  }

  void compare(Opened* on_core, Opened* on_library, const Buffer& code, size_t most, bool paused) {
    Buffer expected, got, taken;
    const bool good = GetParam().expand(code, most, &expected);
    const uint64_t before = rtl::clocks;
    ASSERT_EQ(on_core->decode(code, most, &got), good);
    if (!paused) {
      ASSERT_LE(rtl::clocks - before, code.size() + most + 40);
    }
    if (good) {
      ASSERT_EQ(got, expected);
    }
    if (on_library->decode(code, most, &taken) && good) {
      ASSERT_EQ(got, taken);
    }
  }

  const Codec* codec = nullptr;
  const Kernel *core = nullptr, *library = nullptr;
};

TEST_P(Lz, Truncations) {
  std::mt19937_64 random(1);
  Opened on_core(core), on_library(library);
  for (int i = 0; i < 40; ++i) {
    const Buffer raw = bytes(1 + random() % 300, &random);
    const Buffer code = on_library.encoded(*codec, raw);
    for (size_t size = code.size(); size > 0; --size) {
      const Buffer cut(code.begin(), code.begin() + static_cast<ptrdiff_t>(size));
      compare(&on_core, &on_library, cut, raw.size(), false);
      if (HasFatalFailure()) return;
    }
  }
}

void mutate(int n_codes, int n_each, const Codec& codec, Opened* on_core, Opened* on_library,
            std::mt19937_64* random, const auto& compare) {
  for (int i = 0; i < n_codes; ++i) {
    const Buffer raw = bytes(1 + (*random)() % 900, random);
    const Buffer code = on_library->encoded(codec, raw);
    for (int k = 0; k < n_each; ++k) {
      compare(on_core, on_library, rtl::mutated(code, random), raw.size() + (*random)() % 2 * 50);
      compare(on_core, on_library, code, raw.size());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(Lz, Mutations) {
  std::mt19937_64 random(2);
  Opened on_core(core), on_library(library);
  mutate(200, 10, *codec, &on_core, &on_library, &random,
         [&](auto... args) { compare(args..., false); });
}

TEST_P(Lz, MutationsWithPauses) {
  std::mt19937_64 random(3);
  for (const unsigned pause : {32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = 256 - pause, .seed = pause};
    Opened on_core(core), on_library(library);
    mutate(40, 5, *codec, &on_core, &on_library, &random,
           [&](auto... args) { compare(args..., true); });
  }
  rtl::pauses = {};
}

// --gtest_also_run_disabled_tests: 10^5 of them.
TEST_P(Lz, DISABLED_Long) {
  std::mt19937_64 random(4);
  Opened on_core(core), on_library(library);
  mutate(5000, 20, *codec, &on_core, &on_library, &random,
         [&](auto... args) { compare(args..., false); });
}

// The whole window, far lengths, and blocks of 4 MiB, of which one more byte is refused.
TEST_P(Lz, FarAndLong) {
  std::mt19937_64 random(5);
  Opened on_core(core), on_library(library);
  constexpr size_t kMost = size_t{4} << 20;
  for (const unsigned kind : {0u, 1u, 2u}) {
    Buffer raw(kind == 2 ? 300000 : kMost);
    const size_t period = kind == 2 ? 65535 : kMost;
    if (kind > 0)
      for (size_t i = 0; i < raw.size(); ++i)
        raw[i] = i < period ? static_cast<std::byte>(random()) : raw[i - period];
    const Buffer code = on_library.encoded(*codec, raw);
    Buffer got;
    ASSERT_TRUE(on_core.decode(code, raw.size(), &got));
    ASSERT_EQ(got, raw);
    ASSERT_FALSE(on_core.decode(code, raw.size() - 1, &got));
  }
}

// A sequence of each kind of bytes: repeats, runs of few, none that repeats, repeats without bytes
// of their own.
Buffer any(size_t n, std::mt19937_64* random) {
  const auto kind = (*random)() % 4;
  if (kind == 0) return bytes(n, random);
  const uint64_t mask = kind == 1 ? 255 : (*random)() % 4;
  Buffer data(n);
  for (auto& byte : data) byte = static_cast<std::byte>((*random)() & mask);
  for (size_t i = 70 + (*random)() % 3000; kind == 3 && i < n; ++i) data[i] = data[i % 61];
  return data;
}

void code(const Codec& codec, ConstBytes raw, Opened* on_core, Opened* on_library, Buffer* coded) {
  *coded = on_core->encoded(codec, raw);  // in a buffer of the bound
  Buffer got;
  ASSERT_TRUE(on_library->decode(*coded, raw.size(), &got)) << raw.size();
  ASSERT_TRUE(std::equal(got.begin(), got.end(), raw.begin(), raw.end())) << raw.size();
  ASSERT_TRUE(on_core->decode(*coded, raw.size(), &got)) << raw.size();
  ASSERT_TRUE(std::equal(got.begin(), got.end(), raw.begin(), raw.end())) << raw.size();
}

// Sizes 0 to 300, so many times, and as many around 64 KiB.
void encode(int n_rounds, const Codec& codec, Opened* on_core, Opened* on_library,
            std::mt19937_64* random) {
  Buffer coded;
  for (size_t i = 0; i < static_cast<size_t>(n_rounds) * 302; ++i) {
    const size_t size = i % 302 < 301 ? i % 302 : 65536 - 20 + (*random)() % 40;
    code(codec, any(size, random), on_core, on_library, &coded);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(Lz, Codes) {
  std::mt19937_64 random(6);
  Opened on_core(core), on_library(library);
  encode(6, *codec, &on_core, &on_library, &random);
}

// --gtest_also_run_disabled_tests: 10^5 of them.
TEST_P(Lz, DISABLED_LongCodes) {
  std::mt19937_64 random(7);
  Opened on_core(core), on_library(library);
  encode(332, *codec, &on_core, &on_library, &random);
}

TEST_P(Lz, CodesWithPauses) {
  std::mt19937_64 random(8);
  Opened steady(core), on_library(library);
  for (const unsigned pause : {32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = 256 - pause, .seed = pause};
    Opened paused(core);
    rtl::pauses = {};
    for (int i = 0; i < 40; ++i) {
      const Buffer raw = any(random() % 2000, &random);
      Buffer coded, again;
      code(*codec, raw, &steady, &on_library, &coded);
      code(*codec, raw, &paused, &on_library, &again);
      if (HasFatalFailure()) return;
      ASSERT_EQ(coded, again);
    }
  }
}

// --gtest_also_run_disabled_tests: 4 MiB that repeat nothing, one byte, and what repeats from the
// window's end on, 65,279 bytes back, and behind it; four of each, so that the table is cleared in
// between. Codes are made at 8 bytes a clock, less what they are larger than their bytes; a copy of
// snappy has 64 bytes at most, and those of one match come a clock each once it has ended.
TEST_P(Lz, DISABLED_CodesOf4MiB) {
  const bool short_copies = std::string_view(GetParam().name) == "snappy";
  std::mt19937_64 random(9);
  Opened on_core(core), on_library(library);
  Buffer raw(size_t{4} << 20), coded, first;
  for (const size_t period : {raw.size(), size_t{1}, size_t{65279}, size_t{65280}}) {
    for (size_t i = 0; i < raw.size(); ++i)
      raw[i] = i < period ? static_cast<std::byte>(random()) : raw[i - period];
    for (int again = 0; again < 2; ++again) {
      const uint64_t before = rtl::clocks;
      coded = on_core.encoded(*codec, raw);
      const size_t copies = short_copies && period < raw.size() ? raw.size() / 64 : 0;
      EXPECT_LE(rtl::clocks - before,
                std::max(raw.size(), coded.size()) / 8 * 1.002 + 32768 + copies);
      if (again == 0) first = coded;
      EXPECT_EQ(coded, first);
    }
    code(*codec, raw, &on_core, &on_library, &coded);
    if (HasFatalFailure()) return;
    EXPECT_EQ(coded.size() < raw.size() / (short_copies ? 15 : 20), period < 65280) << period;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, Lz, testing::ValuesIn(kCodes), [](const auto& test) {
  return std::string(test.param.name) +
         (std::string_view(test.param.variant).ends_with("16") ? "_16" : "");
});

}  // namespace
}  // namespace wirepress
