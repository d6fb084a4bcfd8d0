// SPDX-License-Identifier: Apache-2.0
// The cores against the portable kernels while both sides of every stream pause; the conformance
// suite runs them without.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "base/kernel.hpp"
#include "engines/rtl/simulation.hpp"

namespace wirepress {
namespace {

using Buffer = std::vector<std::byte>;

constexpr rtl::Pauses kPauses[] = {
    {.source = 0, .sink = 0, .seed = 1},    {.source = 128, .sink = 0, .seed = 2},
    {.source = 0, .sink = 128, .seed = 3},  {.source = 128, .sink = 128, .seed = 4},
    {.source = 16, .sink = 240, .seed = 5}, {.source = 240, .sink = 16, .seed = 6},
};

struct Pair {
  const Entry* entry;
  const Kernel* core;
};

std::vector<Pair> pairs() {
  std::vector<Pair> found;
  for (const Entry& entry : registry())
    for (const Kernel* kernel : entry.kernels)
      if (std::string_view(kernel->engine) == "rtl") found.push_back({&entry, kernel});
  return found;
}

class Opened {
 public:
  Opened(const Kernel* kernel, const Args& args) : kernel_(kernel), args_(args) {
    if (kernel->open) {
      EXPECT_TRUE(kernel->open(args, &state_).ok());
    }
  }
  ~Opened() {
    if (kernel_->close) kernel_->close(state_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  bool encode(ConstBytes src, Buffer* dst) {
    size_t written = 0;
    const Status status = kernel_->encode(state_, args_, src, *dst, &written);
    EXPECT_NE(status.code(), Code::kDevice) << status.text();  // it hung
    dst->resize(written);
    return status.ok();
  }
  bool decode(ConstBytes src, Bytes dst) {
    size_t written = 0;
    const Status status = kernel_->decode(state_, args_, src, dst, &written);
    EXPECT_NE(status.code(), Code::kDevice) << status.text();
    return status.ok() && written == dst.size();
  }

 private:
  const Kernel* kernel_;
  const Args args_;
  void* state_ = nullptr;
};

// Values as they are met: smooth, equal, zero, and every word there is.
Buffer values(size_t n, std::mt19937_64* random) {
  Buffer data(4 * n);
  const double step = std::ldexp(1.0, static_cast<int>((*random)() % 12) - 8);
  const unsigned kind = static_cast<unsigned>((*random)() % 5);
  float before = 1;
  for (size_t i = 0; i < n; ++i) {
    uint32_t word = static_cast<uint32_t>((*random)());
    float value = static_cast<float>(std::sin(step * static_cast<double>(i)));
    if (kind == 1 && word % 4 != 0) value = before;
    if (kind == 2 && word % 4 != 0) value = 0;
    if (kind == 4 && word % 8 != 0) word &= 0x807FFFFF;  // denormals
    before = value;
    if (kind < 3) std::memcpy(&word, &value, sizeof(word));
    std::memcpy(data.data() + 4 * i, &word, sizeof(word));
  }
  return data;
}

Args random_args(const Codec& codec, std::mt19937_64* random) {
  Args args;
  for (;;) {
    args.dtype = (*random)() % 4 == 0 ? DType::kBfloat16 : DType::kFloat32;
    for (size_t i = 0; i < codec.params.size(); ++i) {
      const Param& param = codec.params[i];
      if (param.real) {  // 1e-6 to 1e3, or what it is by default, which may be all a core knows
        const int digits = 1 + 10 * static_cast<int>((*random)() % 999);
        const int drawn = real_param(digits, static_cast<int>((*random)() % 6) - 6);
        args.value[i] = (*random)() % 2 == 0 ? param.fallback : drawn;
        continue;
      }
      const auto range = static_cast<uint64_t>(param.max - param.min + 1);
      args.value[i] = param.min + static_cast<int>((*random)() % range);
    }
    args.seed = (*random)();
    // Anywhere in an array, and where the lower half of the index overflows.
    args.first = (*random)() >> (*random)() % 64;
    if ((*random)() % 4 == 0) args.first |= 0xFFFFFF00;
    if (!codec.check || codec.check(&args).ok()) return args;
  }
}

// A code, and what becomes of it by damage. Of a code that another project specified (`stock`) the
// library refuses what breaks rules for encoders, and takes an LZ4 offset of 0, which the
// specification refuses: what both take must be the same. lz_test.cpp holds the cores to the
// specification.
void compare_decoding(Opened* core, Opened* scalar, bool stock, const Buffer& code, size_t raw_size,
                      std::mt19937_64* random) {
  Buffer expected(raw_size), decoded(raw_size);
  ASSERT_TRUE(scalar->decode(code, expected));
  ASSERT_TRUE(core->decode(code, decoded));
  ASSERT_EQ(decoded, expected);
  Buffer damaged = code;
  const size_t at = (*random)() % damaged.size();
  switch ((*random)() % 3) {
    case 0:
      damaged[at] ^= std::byte{1} << ((*random)() % 8);
      break;
    case 1:
      damaged.resize(at);
      break;
    default:
      damaged.resize(damaged.size() + 1 + at % 9, std::byte{0});
  }
  const bool good = scalar->decode(damaged, expected), taken = core->decode(damaged, decoded);
  ASSERT_TRUE(taken == good || stock);
  if (good && taken) {
    ASSERT_EQ(decoded, expected);
  }
}

// Adds `code` to `sum` so many times, or as often as it goes.
void add_up(const Kernel& kernel, const Args& args, const Buffer& code, size_t raw_size,
            size_t times, Buffer* sum) {
  for (size_t i = 0; i < times; ++i) {
    Buffer next(2 * raw_size + 64);
    size_t written = 0;
    if (!kernel.add(nullptr, args, *sum, code, raw_size, next, &written).ok()) return;
    next.resize(written);
    *sum = next;
  }
}

// Both directions, damaged codes between good ones, and sums of codes where the codec has them.
void compare(const Pair& pair, const Args& args, size_t n, std::mt19937_64* random) {
  const Codec& codec = *pair.entry->codec;
  const Kernel& portable = *pair.entry->kernels.back();
  Opened core(pair.core, args), scalar(&portable, args);
  for (int packet = 0; packet < 4; ++packet) {
    const Buffer raw = values(n + static_cast<size_t>(packet), random);
    Buffer expected(codec.bound(args, raw.size())), code(expected.size());
    ASSERT_TRUE(scalar.encode(raw, &expected));
    ASSERT_TRUE(core.encode(raw, &code));
    if (codec.exact_encode) {
      ASSERT_EQ(code, expected);
    }
    compare_decoding(&core, &scalar, !codec.exact_encode, code, raw.size(), random);
    Buffer small(code.size() - 1);
    ASSERT_FALSE(core.encode(raw, &small));
    if (portable.add == nullptr) continue;
    const Buffer other = values(n + static_cast<size_t>(packet), random);
    Buffer sum(codec.bound(args, raw.size()));
    ASSERT_TRUE(scalar.encode(other, &sum));
    add_up(portable, args, code, raw.size(), 1 + (*random)() % 125, &sum);
    compare_decoding(&core, &scalar, false, sum, raw.size(), random);
  }
}

void compare_all(int n_settings, size_t n_values) {
  std::mt19937_64 random(1);
  for (const Pair& pair : pairs())
    for (int i = 0; i < n_settings; ++i) {
      rtl::pauses = kPauses[static_cast<size_t>(i) % std::size(kPauses)];
      const Args args = random_args(*pair.entry->codec, &random);
      SCOPED_TRACE(testing::Message()
                   << pair.entry->codec->name << " " << args.value[0] << " " << args.value[1] << " "
                   << args.value[2] << " " << args.value[3] << " " << dtype_name(args.dtype)
                   << ", setting " << i);
      // Some of more than one chunk of bx, and of fewer than one row.
      const size_t n = i % 12 == 5 ? 9000 + static_cast<size_t>(i) : i % 12 == 9 ? 1 : n_values;
      compare(pair, args, n, &random);
      if (testing::Test::HasFatalFailure()) break;
    }
  rtl::pauses = {};
}

TEST(Rtl, PausesChangeNothing) {
  if (pairs().empty()) GTEST_SKIP() << "built without Verilator";
  compare_all(24, 300);
}

// --gtest_also_run_disabled_tests: over 10^7 values.
TEST(Rtl, DISABLED_Long) { compare_all(1200, 2100); }

// What is drawn for a value, as codecs/terngrad/spec.md says it.
uint32_t drawn_bits(uint64_t seed, uint64_t index) {
  uint32_t h = static_cast<uint32_t>(index) * 0x9E3779B1U + static_cast<uint32_t>(seed);
  h ^= static_cast<uint32_t>(index >> 32) * 0x85EBCA6BU + static_cast<uint32_t>(seed >> 32);
  h = (h ^ h >> 16) * 0x7FEB352DU;
  h = (h ^ h >> 15) * 0x846CA68BU;
  return h ^ h >> 16;
}

// A chunk of values that are what they are compared with, or a float above or below. Scales of
// few bits, so that many products lie in the middle between two floats.
Buffer values_as_drawn(const Args& args, std::mt19937_64* random) {
  const auto odd = static_cast<float>(1 + 2 * ((*random)() % 16));
  const float scale = std::ldexp(odd, static_cast<int>((*random)() % 260) - 149);
  std::vector<uint32_t> words(4096);
  uint32_t most = 0;
  std::memcpy(&most, &scale, sizeof(most));
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t bits = drawn_bits(args.seed, args.first + i) >> 9;
    const float value = std::ldexp(static_cast<float>(bits), -23) * scale;
    std::memcpy(&words[i], &value, sizeof(value));
    const auto step = static_cast<int>((*random)() % 3) - 1;
    words[i] = std::min(words[i] + static_cast<uint32_t>(words[i] != 0 ? step : 1), most);
    words[i] |= static_cast<uint32_t>((*random)() % 2) << 31;
  }
  words[(*random)() % words.size()] = most;
  Buffer data(4 * words.size());
  std::memcpy(data.data(), words.data(), data.size());
  return data;
}

TEST(Rtl, TerngradAtWhatIsDrawn) {
  std::mt19937_64 random(1);
  for (const Pair& pair : pairs()) {
    if (std::string_view(pair.entry->codec->name) != "terngrad") continue;
    for (int i = 0; i < 200; ++i) {
      Args args;
      args.seed = random();
      args.first = random() >> random() % 64;
      Opened core(pair.core, args), scalar(pair.entry->kernels.back(), args);
      const Buffer raw = values_as_drawn(args, &random);
      Buffer expected(pair.entry->codec->bound(args, raw.size())), code(expected.size());
      ASSERT_TRUE(scalar.encode(raw, &expected));
      ASSERT_TRUE(core.encode(raw, &code));
      ASSERT_EQ(code, expected) << i;
    }
  }
}

// Adds whether clocks are counted with these settings, in coding and in decoding.
void count_clocks(const Pair& pair, const Args& args, bool* coded, bool* decoded) {
  Opened core(pair.core, args);
  const Buffer raw(4 * 4096);
  Buffer code(pair.entry->codec->bound(args, raw.size())), back(raw.size());
  const uint64_t before = rtl::clocks;
  EXPECT_TRUE(core.encode(raw, &code));
  const uint64_t between = rtl::clocks;
  EXPECT_TRUE(core.decode(code, back));
  *coded = *coded || between > before;
  *decoded = *decoded || rtl::clocks > between;
}

// With some settings: others may go the portable way, as coding does in kernels that have a decoder
// alone; then another kernel of the codec codes.
TEST(Rtl, ClocksAreCounted) {
  std::mt19937_64 random(1);
  std::map<std::string_view, bool> coded;
  for (const Pair& pair : pairs()) {
    bool& codes = coded[pair.entry->codec->name];
    bool decodes = false;
    for (int i = 0; i < 500 && !(codes && decodes); ++i) {
      Args args = random_args(*pair.entry->codec, &random);
      args.dtype = DType::kFloat32;
      count_clocks(pair, args, &codes, &decodes);
    }
    EXPECT_TRUE(decodes) << pair.entry->codec->name << " " << pair.core->variant;
  }
  for (const auto& [codec, codes] : coded) EXPECT_TRUE(codes) << codec;
}

}  // namespace
}  // namespace wirepress
