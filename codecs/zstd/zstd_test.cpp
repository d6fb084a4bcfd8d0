// SPDX-License-Identifier: Apache-2.0
// The cores of rtl/zstd against libzstd. The decoder: frames of all levels and windows, blocks of
// all kinds, and damaged frames: every truncation of small ones, and mutations of others, with good
// ones between. The encoder: the library and the decoder core read every frame, its size is
// bounded, and pauses and earlier packets change none of its bytes.
//
// A damaged frame is refused, or gives what libzstd gives, in a number of clocks that follows from
// its size and the room. The core refuses some that libzstd takes: a Huffman stream must end with
// its last symbol, as RFC 8878 says, and an offset must not be 0. It takes none that libzstd
// refuses.
#include <gtest/gtest.h>
#define ZSTD_STATIC_LINKING_ONLY  // parameters that no program should set
#include <zstd.h>

#include <algorithm>
#include <memory>
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
using Random = std::mt19937_64;

// Bytes that repeat, near and far, or none, from an alphabet of many, few, or unlike frequencies.
Buffer bytes(size_t n, Random* random) {
  constexpr unsigned kMasks[] = {255, 3, 15, 63};
  const auto kind = (*random)() % 6;
  Buffer data;
  while (data.size() < n) {
    const size_t size = 1 + (*random)() % ((*random)() % 8 == 0 ? 400 : 24);
    const size_t offset = 1 + (*random)() % ((*random)() % 2 == 0 ? 12 : 3000);
    if (kind < 4 && (*random)() % 2 == 0 && offset <= data.size()) {
      for (size_t i = 0; i < size; ++i) data.push_back(data[data.size() - offset]);
    } else if (kind == 5) {
      data.insert(data.end(), 20 * size, static_cast<std::byte>((*random)()));
    } else {
      for (size_t i = 0; i < size; ++i) {
        const uint64_t draw = (*random)();
        const auto rare = static_cast<unsigned>(5 * __builtin_popcountll(draw & 0xFFFFFF));
        data.push_back(
            static_cast<std::byte>(kind == 4 ? rare : draw & draw >> 9 & kMasks[kind % 4]));
      }
    }
  }
  data.resize(n);
  return data;
}

// Some of what decides how libzstd searches, where it ends blocks and how it codes literals.
void set_parameters(ZSTD_CCtx* context, Random* random) {
  const struct {
    ZSTD_cParameter parameter;
    int least, most;
  } all[] = {
    {ZSTD_c_strategy, ZSTD_fast, ZSTD_btultra2},
    {ZSTD_c_minMatch, 3, 7},
    {ZSTD_c_searchLog, 1, 6},
    {ZSTD_c_hashLog, 6, 15},
    {ZSTD_c_chainLog, 6, 15},
    {ZSTD_c_targetLength, 0, 999},
    {ZSTD_c_literalCompressionMode, ZSTD_ps_auto, ZSTD_ps_disable},
#ifdef ZSTD_c_useBlockSplitter
    {ZSTD_c_useBlockSplitter, ZSTD_ps_auto, ZSTD_ps_disable},
#endif
#ifdef ZSTD_c_maxBlockSize
    {ZSTD_c_maxBlockSize, 1 << 10, 1 << 17},
#endif
#if defined(ZSTD_c_targetCBlockSize) || ZSTD_VERSION_NUMBER >= 10506
    {ZSTD_c_targetCBlockSize, 1340, 1 << 16},
#endif
  };
  for (const auto& [parameter, least, most] : all) {
    if ((*random)() % 3 != 0) continue;
    const int value =
        least + static_cast<int>((*random)() % static_cast<unsigned>(most - least + 1));
    ASSERT_FALSE(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value))) << parameter;
  }
}

// A frame of any level and window that the core takes, with a checksum or without, in blocks that
// end where it pleases the draw; with any other parameters, too.
Buffer frame(const Buffer& raw, Random* random, int window_log = 0, bool any = false) {
  static const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                            ZSTD_freeCCtx);
  ZSTD_CCtx* made = context.get();
  ZSTD_CCtx_reset(made, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(made, ZSTD_c_compressionLevel, static_cast<int>((*random)() % 73) - 50);
  if (window_log == 0) window_log = static_cast<int>(10 + (*random)() % 8);
  ZSTD_CCtx_setParameter(made, ZSTD_c_windowLog, window_log);
  ZSTD_CCtx_setParameter(made, ZSTD_c_checksumFlag, (*random)() % 2 == 0);
  if (any) set_parameters(made, random);
  ZSTD_CCtx_setPledgedSrcSize(made, raw.size());
  Buffer code(ZSTD_compressBound(raw.size()) + 4096);
  ZSTD_outBuffer out{code.data(), code.size(), 0};
  ZSTD_inBuffer in{raw.data(), 0, 0};
  while (in.pos < raw.size() && (*random)() % 4 != 0) {
    in.size = in.pos + 1 + (*random)() % (raw.size() - in.pos);
    EXPECT_EQ(ZSTD_compressStream2(made, &out, &in, ZSTD_e_flush), 0u);
  }
  in.size = raw.size();
  EXPECT_EQ(ZSTD_compressStream2(made, &out, &in, ZSTD_e_end), 0u);
  code.resize(out.pos);
  return code;
}

class Zstd : public testing::Test {
 protected:
  void SetUp() override {
    const Entry* entry = find_codec("zstd", 4);
    ASSERT_NE(entry, nullptr);
    for (const Kernel* kernel : entry->kernels)
      (std::string_view(kernel->engine) == "rtl" ? core : library) = kernel;
    if (core == nullptr) GTEST_SKIP() << "built without Verilator";
  }

  // n frames of up to `most` bytes, one of `large` of up to 200 KiB; with any parameters, or a few.
  void good(int n, size_t most, Random* random, int large = 16, bool any = false) {
    Opened on_core(core);
    for (int i = 0; i < n; ++i) {
      const Buffer raw = bytes((*random)() % (i % large == 0 ? size_t{200} << 10 : most), random);
      const Buffer code = frame(raw, random, 0, any);
      Buffer got;
      const uint64_t before = rtl::clocks;
      ASSERT_TRUE(on_core.decode(code, raw.size() + i % 2, &got)) << i;
      ASSERT_EQ(got, raw) << i;
      ASSERT_GT(rtl::clocks, before) << "decoded by the library";
    }
  }

  void compare(Opened* on_core, Opened* on_library, const Buffer& code, size_t most, bool paused) {
    Buffer expected, got;
    const uint64_t before = rtl::clocks;
    const bool taken = on_core->decode(code, most, &got);
    const uint64_t clocks = rtl::clocks - before;
    if (!paused) {
      ASSERT_LE(clocks, 100 * code.size() + 2 * most + 40000);
    }
    const bool good = on_library->decode(code, most, &expected);
    ASSERT_TRUE(good || !taken);
    if (taken) {
      ASSERT_EQ(got, expected);
    }
    stricter += good && !taken;
    ++compared;
  }

  void mutate(int n_codes, int n_each, size_t most, Random* random, bool paused) {
    Opened on_core(core), on_library(library);
    for (int i = 0; i < n_codes; ++i) {
      const Buffer raw = bytes(1 + (*random)() % most, random);
      const Buffer code = frame(raw, random);
      for (int k = 0; k < n_each; ++k) {
        compare(&on_core, &on_library, rtl::mutated(code, random, 60),
                raw.size() + (*random)() % 2 * 50, paused);
        if (HasFatalFailure()) return;
      }
      Buffer got;
      ASSERT_TRUE(on_core.decode(code, raw.size(), &got));
      ASSERT_EQ(got, raw);
    }
    // Of the damaged ones few have a stream that ends too early and are whole otherwise.
    EXPECT_LE(stricter, 5 + compared / 20);
  }

  const Kernel *core = nullptr, *library = nullptr;
  int stricter = 0, compared = 0;
};

TEST_F(Zstd, Frames) {
  Random random(1);
  good(160, 3000, &random);
}

TEST_F(Zstd, FramesWithPauses) {
  Random random(8);
  for (const unsigned pause : {32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = 256 - pause, .seed = pause};
    good(16, 3000, &random);
  }
  rtl::pauses = {};
}

// --gtest_also_run_disabled_tests: 2,000 of them.
TEST_F(Zstd, DISABLED_ManyFrames) {
  Random random(2);
  good(2000, 8000, &random);
}

TEST_F(Zstd, ParameterSets) {
  Random random(18);
  good(100, 1000, &random, 64, true);
}

// --gtest_also_run_disabled_tests: 10^4 of them; --gtest_shuffle --gtest_random_seed=N: others.
TEST_F(Zstd, DISABLED_ManyParameterSets) {
  Random random(18 + static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  good(10000, 1000, &random, 64, true);
}

TEST_F(Zstd, Truncations) {
  Random random(3);
  Opened on_core(core), on_library(library);
  for (int i = 0; i < 12; ++i) {
    const Buffer raw = bytes(1 + random() % 300, &random);
    const Buffer code = frame(raw, &random);
    Buffer got;
    for (size_t size = code.size() - 1; size > 0; --size) {
      const Buffer cut(code.begin(), code.begin() + static_cast<ptrdiff_t>(size));
      compare(&on_core, &on_library, cut, raw.size(), false);
      if (HasFatalFailure()) return;
      if (size % 32 == 0) {
        ASSERT_TRUE(on_core.decode(code, raw.size(), &got));
        ASSERT_EQ(got, raw);
      }
    }
  }
  EXPECT_EQ(stricter, 0);
}

TEST_F(Zstd, Mutations) {
  Random random(4);
  mutate(100, 6, 900, &random, false);
}

TEST_F(Zstd, MutationsWithPauses) {
  Random random(5);
  for (const unsigned pause : {32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = 256 - pause, .seed = pause};
    mutate(12, 4, 900, &random, true);
    if (HasFatalFailure()) return;
  }
  rtl::pauses = {};
}

// The same of mutations: 10^4, and others.
TEST_F(Zstd, DISABLED_ManyMutations) {
  Random random(6 + static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  mutate(1000, 10, 1500, &random, false);
}

Buffer buffer(std::initializer_list<unsigned> values) {
  Buffer made;
  for (const unsigned value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

struct Case {
  const char* name;
  Buffer code;
  size_t raw_size;  // of what the core and the library take; 0: both refuse
};

// What libzstd does not write, or seldom.
std::vector<Case> cases() {
  return {
      {"block of one byte repeated", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 9, 0x4b, 0, 0, 7}), 9},
      {"literals of one byte repeated, in bytes of the header: 2",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 200, 0x25, 0, 0, 0x85, 0x0c, 7, 0}), 200},
      {"raw block of no byte, then one",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 0, 0, 0, 9, 0, 0, 7}), 1},
      {"no byte", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}), 0},
      {"a dictionary of number 0", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x21, 0, 2, 0x11, 0, 0, 7, 8}),
       2},
      {"a dictionary", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x21, 1, 2, 0x11, 0, 0, 7, 8}), 0},
      {"a reserved bit", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x28, 2, 0x11, 0, 0, 7, 8}), 0},
      {"a bit without use", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x30, 2, 0x11, 0, 0, 7, 8}), 2},
      {"no size", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0, 0x11, 0, 0, 7, 8}), 0},
      {"a size in 8 bytes",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0xe0, 2, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 7, 8}), 2},
      {"a size of 2^32 more",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0x11, 0, 0, 7, 8}), 0},
      {"a skippable frame", buffer({0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 8}), 0},
      {"a reserved block", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x17, 0, 0, 7, 8}), 0},
      {"a byte behind", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 7, 8, 9}), 0},
      {"a byte more than the size", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 0x11, 0, 0, 7, 8}), 0},
      {"a byte less", buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x11, 0, 0, 7, 8}), 0},
      {"treeless literals in the first block",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x35, 0, 0, 0x23, 0x40, 0, 7, 1, 0}), 0},
      {"repeated tables in the first block",
       buffer({0x28, 0xb5, 0x2f, 0xfd, 0x20, 8, 0x35, 0, 0, 0x08, 7, 1, 0xfc, 1, 1}), 0},
  };
}

TEST_F(Zstd, Cases) {
  Opened on_core(core), on_library(library);
  for (const Case& one : cases()) {
    Buffer got, expected;
    const bool taken = on_core.decode(one.code, 300, &got);
    EXPECT_EQ(on_library.decode(one.code, 300, &expected), taken) << one.name;
    EXPECT_EQ(got.size(), one.raw_size) << one.name;
    EXPECT_EQ(got, expected) << one.name;
    EXPECT_EQ(on_core.decode(one.code, std::max<size_t>(one.raw_size, 1) - 1, &got),
              taken && one.raw_size == 0)
        << one.name;
  }
}

// Blocks of the largest size that fill the core's memories, and many of them.
TEST_F(Zstd, LargeBlocks) {
  Random random(7);
  Opened on_core(core);
  for (const unsigned kind : {0u, 1u, 2u}) {
    Buffer raw(size_t{300} << 10), got;
    for (size_t i = 0; i < raw.size(); ++i) {
      const uint64_t draw = random();
      raw[i] = static_cast<std::byte>(kind == 0 ? draw : kind == 1 ? draw & draw >> 8 : 0);
      if (kind == 2) raw[i] = i < (128 << 10) ? static_cast<std::byte>(draw) : raw[i - (128 << 10)];
    }
    const Buffer code = frame(raw, &random, 17);
    ASSERT_TRUE(on_core.decode(code, raw.size(), &got));
    ASSERT_EQ(got, raw);
    ASSERT_FALSE(on_core.decode(code, raw.size() - 1, &got));
  }
}

// ---- encoder ------------------------------------------------------------------------------------

Args level(int value) {
  Args args;
  args.value[0] = value;
  return args;
}

class ZstdEncoder : public Zstd {
 protected:
  // One frame, read by the library, and by the decoder core where that is asked for.
  Buffer encoded(Opened* encoder, const Buffer& raw, Opened* decoder = nullptr) {
    const uint64_t before = rtl::clocks;
    const Buffer code = encoder->encoded(*find_codec("zstd", 4)->codec, raw);
    EXPECT_GT(rtl::clocks, before) << "encoded by the library";
    const size_t n_blocks = std::max<size_t>(1, (raw.size() + 65535) / 65536);
    if (rtl::pauses.sink == 0 && rtl::pauses.source == 0) {
      EXPECT_LE(rtl::clocks - before, 26000 * n_blocks + 20000);
    }
    EXPECT_LE(code.size(), raw.size() + 10 + 3 * n_blocks);
    Buffer got(raw.size());
    EXPECT_EQ(ZSTD_decompress(got.data(), got.size(), code.data(), code.size()), raw.size());
    EXPECT_TRUE(got == raw) << raw.size();
    if (decoder != nullptr) {
      EXPECT_TRUE(decoder->decode(code, raw.size(), &got));
      EXPECT_TRUE(got == raw) << raw.size();
    }
    return code;
  }

  void many(int n, size_t most, Random* random) {
    Opened encoder(core, level(1)), decoder(core);
    for (int i = 0; i < n && !HasFailure(); ++i)
      encoded(&encoder, bytes((*random)() % (i % 50 == 0 ? size_t{300} << 10 : most), random),
              &decoder);
  }
};

TEST_F(ZstdEncoder, SmallSizes) {
  Random random(11);
  Opened encoder(core, level(1)), decoder(core);
  for (size_t size = 0; size < 300 && !HasFailure(); ++size)
    encoded(&encoder, bytes(size, &random), &decoder);
}

TEST_F(ZstdEncoder, Frames) {
  Random random(12);
  many(100, 4000, &random);
}

// Blocks end within matches, at every byte of one; and there are bytes behind the last whole block.
TEST_F(ZstdEncoder, EndsOfBlocks) {
  Opened encoder(core, level(1)), decoder(core);
  for (size_t i = 0; i < 24 && !HasFailure(); ++i) {
    Random random(13);
    Buffer raw = bytes(size_t{65536} - 40 + i, &random);
    raw.insert(raw.end(), raw.begin() + 100, raw.begin() + 140 + static_cast<ptrdiff_t>(i % 5));
    const Buffer tail = bytes(300 + i, &random);
    raw.insert(raw.end(), tail.begin(), tail.end());
    encoded(&encoder, raw, i < 4 ? &decoder : nullptr);
  }
}

// One byte, two bytes, all bytes alike, none that repeat, a byte that is very rare, 255 of 256.
TEST_F(ZstdEncoder, Kinds) {
  Random random(14);
  Opened encoder(core, level(1)), decoder(core);
  for (const size_t size : {size_t{1000}, size_t{200000}}) {
    for (unsigned kind = 0; kind < 7 && !HasFailure(); ++kind) {
      Buffer raw(size);
      for (size_t i = 0; i < size; ++i) {
        const auto draw = static_cast<unsigned>(random() >> 32);
        const unsigned values[] = {0,
                                   draw % 2,
                                   draw % 256,
                                   draw % 700 == 0 ? 200u : draw / 1000 % 2,
                                   draw % 255,
                                   draw % 1024 < 1000 ? draw / 1024 % 2 : draw % 256,
                                   static_cast<unsigned>(__builtin_ctz(draw | 1u << 31) * 8)};
        raw[i] = static_cast<std::byte>(values[kind]);
      }
      encoded(&encoder, raw, &decoder);
    }
  }
}

TEST_F(ZstdEncoder, PausesChangeNothing) {
  Random random(15);
  std::vector<Buffer> raw;
  for (int i = 0; i < 24; ++i) raw.push_back(bytes(random() % (i == 0 ? 150000 : 3000), &random));
  std::vector<Buffer> expected;
  for (const unsigned pause : {0u, 32u, 128u, 224u}) {
    rtl::pauses = {.source = pause, .sink = pause == 0 ? 0 : 256 - pause, .seed = pause + 1};
    Opened encoder(core, level(1));
    for (size_t i = 0; i < raw.size() && !HasFailure(); ++i) {
      const Buffer code = encoded(&encoder, raw[i]);
      if (pause == 0) expected.push_back(code);
      EXPECT_TRUE(code == expected[i]) << i;
    }
  }
  rtl::pauses = {};
}

TEST_F(ZstdEncoder, LevelsOfTheLibrary) {
  Random random(16);
  const Buffer raw = bytes(3000, &random);
  const auto* codec = find_codec("zstd", 4)->codec;
  for (const int value : {0, 3, 19}) {
    const uint64_t before = rtl::clocks;
    const Buffer code = Opened(core, level(value)).encoded(*codec, raw);
    EXPECT_EQ(rtl::clocks, before);
    EXPECT_EQ(code, Opened(library, level(value)).encoded(*codec, raw));
  }
}

// --gtest_also_run_disabled_tests: 10^4 of them.
TEST_F(ZstdEncoder, DISABLED_Many) {
  Random random(17);
  many(10000, 5000, &random);
}

}  // namespace
}  // namespace wirepress
