// SPDX-License-Identifier: Apache-2.0
// Tests of recipes, one-shot calls, streams and the C door.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/probe.hpp"
#include "pipeline/recipe.hpp"
#include "wirepress/wirepress.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define COUNT_ALLOCATIONS 1
static std::atomic<long> allocations{0};
extern "C" {
void* __libc_malloc(size_t);
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
}
#endif

namespace wirepress {
namespace {

using Raw = std::vector<uint8_t>;

Raw noise(size_t n) {
  Raw raw(n);
  std::mt19937_64 random(7);
  for (uint8_t& byte : raw) byte = static_cast<uint8_t>(random());
  return raw;
}

// A slowly rising wave with some noise: float32 that shuffle and zstd can shrink.
Raw floats(size_t n) {
  Raw raw(4 * n);
  for (size_t i = 0; i < n; ++i) {
    const float value = std::round(1000 * std::sin(static_cast<float>(i) / 50)) / 8;
    std::memcpy(&raw[4 * i], &value, 4);
  }
  return raw;
}

class Door {
 public:
  Door() { EXPECT_EQ(wpr_create(&ctx_), WPR_OK); }
  ~Door() { wpr_free(ctx_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  wpr_ctx* get() { return ctx_; }
  void set(const char* key, const std::string& value) {
    ASSERT_EQ(wpr_set(ctx_, key, value.c_str()), WPR_OK) << wpr_error(ctx_);
  }
  Raw compress(const Raw& raw) {
    Raw frame(wpr_bound(ctx_, raw.size()));
    size_t written = 0;
    EXPECT_EQ(wpr_compress(ctx_, raw.data(), raw.size(), frame.data(), frame.size(), &written),
              WPR_OK)
        << wpr_error(ctx_);
    frame.resize(written);
    return frame;
  }
  Raw decompress(const Raw& frame, size_t cap) {
    Raw raw(cap);
    size_t written = 0;
    EXPECT_EQ(wpr_decompress(ctx_, frame.data(), frame.size(), raw.data(), cap, &written), WPR_OK)
        << wpr_error(ctx_);
    raw.resize(written);
    return raw;
  }

 private:
  wpr_ctx* ctx_;
};

TEST(Recipe, TextRoundTrips) {
  for (const char* text : {"store", "zstd:3", "shuffle:4+zstd:-7", "fre:m=6,round=truncate",
                           "shuffle:8+lz4:9", "onebit", "onebit:7"}) {
    Recipe recipe;
    ASSERT_TRUE(parse_recipe(text, DType::kFloat32, "auto", &recipe).ok()) << text;
    EXPECT_EQ(recipe_text(recipe), text);
  }
}

TEST(Recipe, ErrorsListTheKnownOnes) {
  struct Case {
    const char *text, *expected;
  };
  for (const Case& it : {Case{"lz5", "lz4, snappy, zstd"},
                         {"zstd:99", "-50..22"},
                         {"zstd:level=x", "-50..22"},
                         {"zstd:speed=1", "known: level"},
                         {"fre:round=up", "nearest, truncate"},
                         {"", "unknown codec \"\""},
                         {"zstd+fre", "raw size"},
                         {"store:1", "none"},
                         {"zstd:1,2", "name=value"},
                         {"lz4+lz4+lz4+lz4+lz4", "at most 4"}}) {
    Recipe recipe;
    const Status status = parse_recipe(it.text, DType::kBytes, "auto", &recipe);
    EXPECT_EQ(status.code(), Code::kParameter) << it.text;
    EXPECT_NE(std::string(status.text()).find(it.expected), std::string::npos) << status.text();
  }
}

TEST(Recipe, FramesCarryOnlyResolvedParameters) {
  Recipe recipe;
  ASSERT_TRUE(parse_recipe("shuffle", DType::kFloat32, "auto", &recipe).ok());
  Header header;
  header.stages = stages_of(recipe);
  EXPECT_EQ(header.stages.stage[0].bytes[0], 4);
  EXPECT_TRUE(recipe_of(header.stages, header, "auto", &recipe).ok());
  header.stages.stage[0].bytes[0] = 0;
  EXPECT_EQ(recipe_of(header.stages, header, "auto", &recipe).code(), Code::kCorrupt);
}

// A format that is no longer read has an id that nothing else gets, and is refused by its name.
TEST(Recipe, FormerFormatsAreRefused) {
  size_t n = 0;
  for (const Entry& entry : registry()) {
    if (entry.codec->former_id == 0) continue;
    ++n;
    EXPECT_EQ(find_codec(entry.codec->former_id), nullptr) << entry.codec->name;
    Recipe recipe;
    ASSERT_TRUE(parse_recipe(entry.codec->name, DType::kFloat32, "auto", &recipe).ok());
    Stages stages = stages_of(recipe);
    stages.stage[0].id = entry.codec->former_id;
    const Status status = recipe_of(stages, Header(), "auto", &recipe);
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(std::string(status.text()).find(std::string("older format of ") + entry.codec->name),
              std::string::npos)
        << status.text();
  }
  EXPECT_EQ(n, 1u);  // planes
}

// A parameter that came later changes no frame that does without it.
TEST(Recipe, LaterParametersAreLeftOutWhereTheyHaveTheirDefaults) {
  const auto stages = [](const char* text) {
    Recipe recipe;
    EXPECT_TRUE(parse_recipe(text, DType::kFloat32, "auto", &recipe).ok()) << text;
    return stages_of(recipe);
  };
  const Header header;
  Recipe recipe;
  const Stages plain = stages("onebit");
  EXPECT_EQ(plain.stage[0].n_bytes, 0);
  EXPECT_EQ(stages("onebit:block=12").stage[0].n_bytes, 0);
  ASSERT_TRUE(recipe_of(plain, header, "auto", &recipe).ok());
  EXPECT_EQ(recipe.step[0].args.value[0], 12);
  Stages small = stages("onebit:block=7");
  ASSERT_EQ(small.stage[0].n_bytes, 1);
  EXPECT_EQ(small.stage[0].bytes[0], 7);
  ASSERT_TRUE(recipe_of(small, header, "auto", &recipe).ok());
  EXPECT_EQ(recipe.step[0].args.value[0], 7);
  for (const uint8_t bad : {12, 13, 4}) {
    small.stage[0].bytes[0] = bad;
    EXPECT_EQ(recipe_of(small, header, "auto", &recipe).code(), Code::kCorrupt) << int{bad};
  }
  small.stage[0].n_bytes = 2;
  EXPECT_EQ(recipe_of(small, header, "auto", &recipe).code(), Code::kUnsupported);
}

TEST(Probe, TellsNoiseFromData) {
  const Raw random = noise(1 << 20), wave = floats(1 << 18);
  EXPECT_TRUE(looks_incompressible(std::as_bytes(std::span(random))));
  EXPECT_FALSE(looks_incompressible(std::as_bytes(std::span(wave))));
  // 32-bit floats with random mantissas: only a byte in four has structure, and it must be seen.
  std::vector<float> gradient(1 << 18);
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  for (float& value : gradient) value = normal(engine);
  EXPECT_FALSE(looks_incompressible(std::as_bytes(std::span(gradient))));
}

// A peek rules out what has few values, and nothing else.
TEST(Probe, SeesAllNoiseWhateverItsSeed) {
  std::mt19937_64 random(5);
  std::vector<uint64_t> words(1 << 11);
  for (int turn = 0; turn < 20000; ++turn) {
    std::ranges::generate(words, random);
    ASSERT_TRUE(looks_incompressible(std::as_bytes(std::span(words)))) << turn;
  }
  for (size_t at : {size_t{0}, words.size() - 64}) {  // one window of eight is zeros
    std::ranges::generate(words, random);
    std::fill_n(words.begin() + static_cast<ptrdiff_t>(at), 64, 0);
    EXPECT_FALSE(looks_incompressible(std::as_bytes(std::span(words)))) << at;
  }
}

TEST(Pipeline, BytesDoNotDependOnThreads) {
  const Raw raw = floats(700000);
  Raw first;
  for (const char* threads : {"1", "2", "3", "8"}) {
    Door door;
    door.set("threads", threads);
    door.set("block_size", "64KiB");
    door.set("recipe", "shuffle:4+zstd:1");
    const Raw frame = door.compress(raw);
    if (first.empty()) first = frame;
    EXPECT_EQ(frame, first) << threads;
    EXPECT_EQ(door.decompress(frame, raw.size()), raw) << threads;
  }
  EXPECT_LT(first.size(), raw.size() / 2);
}

// Such a frame is written past the caches where it begins a line, by whatever thread.
TEST(Pipeline, LargeFramesComeBackWhereverTheyLie) {
  const Raw raw = floats((32 << 20) / 4 + 5);
  for (const char* threads : {"1", "2"}) {
    Door door;
    door.set("recipe", "planes");
    door.set("threads", threads);
    const Raw frame = door.compress(raw);
    for (const size_t offset : {0, 4}) {
      Raw room(raw.size() + 128);
      uint8_t* const at =
          room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64 + offset;
      size_t written = 0;
      ASSERT_EQ(wpr_decompress(door.get(), frame.data(), frame.size(), at, raw.size(), &written),
                WPR_OK);
      EXPECT_TRUE(written == raw.size() && std::memcmp(at, raw.data(), written) == 0);
    }
  }
}

TEST(Pipeline, SizesAroundTheBlock) {
  Door door;
  door.set("block_size", "1KiB");
  for (const size_t n : {0, 1, 1023, 1024, 1025, 2048, 10000}) {
    const Raw raw = noise(n);
    const Raw frame = door.compress(raw);
    EXPECT_LE(frame.size(), n + 32 + 8 * ((n + 1023) / 1024));
    EXPECT_EQ(door.decompress(frame, n), raw);
    uint64_t raw_size;
    ASSERT_EQ(wpr_raw_size(frame.data(), frame.size(), &raw_size), WPR_OK);
    EXPECT_EQ(raw_size, n);
  }
}

TEST(Pipeline, NoiseIsBypassedEarly) {
  Door door;
  const Raw raw = noise(3 << 20);
  const Raw frame = door.compress(raw);
  wpr_stats stats;
  wpr_get_stats(door.get(), &stats);
  EXPECT_EQ(stats.blocks, 6u);
  EXPECT_EQ(stats.bypassed_probe, 6u);
  EXPECT_EQ(stats.raw_bytes, raw.size());
  EXPECT_EQ(stats.wire_bytes, frame.size());
  door.set("probe", "off");
  door.compress(raw);
  wpr_get_stats(door.get(), &stats);
  EXPECT_EQ(stats.bypassed_size, 6u);
}

TEST(Pipeline, SmallDestinationIsRefusedNotPassed) {
  const Raw raw = floats(100000);
  for (const char* threads : {"1", "3"}) {
    Door door;
    door.set("threads", threads);
    door.set("block_size", "16KiB");
    const Raw frame = door.compress(raw);
    for (const size_t cap : {size_t{0}, size_t{5}, frame.size() / 2, frame.size() - 1}) {
      Raw dst(cap + 16, 0xAA);
      size_t written = 77;
      EXPECT_EQ(wpr_compress(door.get(), raw.data(), raw.size(), dst.data(), cap, &written),
                WPR_DST_TOO_SMALL);
      EXPECT_EQ(written, 77u);
      EXPECT_EQ(Raw(dst.end() - 16, dst.end()), Raw(16, 0xAA));
    }
    size_t written;
    Raw dst(frame.size() + 1024);  // libzstd wants some room beyond the final size
    EXPECT_EQ(wpr_compress(door.get(), raw.data(), raw.size(), dst.data(), dst.size(), &written),
              WPR_OK);
    dst.resize(written);
    EXPECT_EQ(dst, frame);
    EXPECT_EQ(wpr_decompress(door.get(), frame.data(), frame.size(), dst.data(), raw.size() - 1,
                             &written),
              WPR_DST_TOO_SMALL);
  }
}

TEST(Pipeline, RangesTouchOnlyTheirBlocks) {
  Door door;
  door.set("block_size", "4KiB");
  const Raw raw = floats(20000);
  Raw frame = door.compress(raw);
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const size_t offset = random() % raw.size(), size = random() % (raw.size() - offset + 1);
    Raw part(size);
    ASSERT_EQ(
        wpr_decompress_range(door.get(), frame.data(), frame.size(), offset, size, part.data()),
        WPR_OK);
    EXPECT_EQ(part, Raw(raw.begin() + static_cast<long>(offset),
                        raw.begin() + static_cast<long>(offset + size)));
  }
  Raw part(10);
  EXPECT_EQ(
      wpr_decompress_range(door.get(), frame.data(), frame.size(), raw.size() - 5, 10, part.data()),
      WPR_PARAMETER);
  frame.back() ^= 1;  // the last block is damaged: the first ones can still be read
  EXPECT_EQ(wpr_decompress_range(door.get(), frame.data(), frame.size(), 0, 10, part.data()),
            WPR_OK);
  EXPECT_EQ(wpr_decompress_range(door.get(), frame.data(), frame.size(), raw.size() - 10, 10,
                                 part.data()),
            WPR_CHECKSUM);
  EXPECT_NE(std::string(wpr_error(door.get())).find("block 19"), std::string::npos)
      << wpr_error(door.get());
}

TEST(Pipeline, ArraysKeepTypeAndShape) {
  Door door;
  const Raw raw = floats(24);
  const uint64_t shape[] = {2, 3, 4};
  Raw frame(wpr_bound(door.get(), raw.size()));
  size_t written;
  ASSERT_EQ(wpr_compress_array(door.get(), raw.data(), WPR_FLOAT32, 3, shape, frame.data(),
                               frame.size(), &written),
            WPR_OK);
  wpr_info info;
  ASSERT_EQ(wpr_inspect(door.get(), frame.data(), written, &info), WPR_OK);
  EXPECT_EQ(info.n_dims, 3);
  EXPECT_EQ(info.shape[2], 4u);
  EXPECT_EQ(info.dtype, WPR_FLOAT32);
  EXPECT_EQ(info.raw_size, raw.size());
  EXPECT_STREQ(info.recipe, "zstd:1");
}

Raw stream(Door& door, const Raw& raw, size_t piece) {
  Raw frame(wpr_stream_bound(door.get(), 0));
  size_t written;
  EXPECT_EQ(wpr_stream_begin(door.get(), WPR_BYTES, frame.data(), frame.size(), &written), WPR_OK);
  frame.resize(written);
  for (size_t at = 0; at < raw.size(); at += piece) {
    const size_t n = std::min(piece, raw.size() - at);
    Raw out(wpr_stream_bound(door.get(), n));
    EXPECT_EQ(wpr_stream_update(door.get(), &raw[at], n, out.data(), out.size(), &written), WPR_OK);
    frame.insert(frame.end(), out.begin(), out.begin() + static_cast<long>(written));
  }
  Raw out(wpr_stream_bound(door.get(), 0));
  EXPECT_EQ(wpr_stream_end(door.get(), out.data(), out.size(), &written), WPR_OK);
  frame.insert(frame.end(), out.begin(), out.begin() + static_cast<long>(written));
  return frame;
}

Raw expand(Door& door, const Raw& frame, size_t piece_in, size_t piece_out, bool* done) {
  Raw raw;
  EXPECT_EQ(wpr_expand_begin(door.get()), WPR_OK);
  int finished = 0;
  for (size_t at = 0; !finished;) {
    Raw out(piece_out);
    size_t consumed, written;
    const size_t n = std::min(piece_in, frame.size() - at);
    EXPECT_EQ(wpr_expand_update(door.get(), frame.data() + at, n, &consumed, out.data(), out.size(),
                                &written, &finished),
              WPR_OK)
        << wpr_error(door.get());
    at += consumed;
    raw.insert(raw.end(), out.begin(), out.begin() + static_cast<long>(written));
    if (consumed == 0 && written == 0) break;
  }
  *done = finished;
  return raw;
}

TEST(Stream, RoundTripsInPieces) {
  for (const char* threads : {"1", "3"}) {
    Door door;
    door.set("threads", threads);
    door.set("block_size", "4KiB");
    for (const size_t n : {0, 1, 4096, 4097, 24576, 100001}) {
      Raw raw = floats(n / 4 + 1);
      raw.resize(n);
      for (const size_t piece : {1000, 5000, 1000000}) {
        const Raw frame = stream(door, raw, piece);
        EXPECT_EQ(frame, stream(door, raw, 77777));
        EXPECT_EQ(door.decompress(frame, n), raw);
        bool done;
        EXPECT_EQ(expand(door, frame, piece, 3333, &done), raw);
        EXPECT_TRUE(done);
        uint64_t raw_size;
        ASSERT_EQ(wpr_raw_size(frame.data(), frame.size(), &raw_size), WPR_OK);
        EXPECT_EQ(raw_size, n);
      }
    }
  }
}

TEST(Stream, ReadsFramesOfKnownSizeToo) {
  Door door;
  door.set("block_size", "4KiB");
  for (const size_t n : {0, 5, 40000}) {
    const Raw raw = noise(n);
    bool done;
    EXPECT_EQ(expand(door, door.compress(raw), 1, 4096, &done), raw);
    EXPECT_TRUE(done);
  }
}

TEST(Stream, TruncationIsNeverDone) {
  Door door;
  door.set("block_size", "1KiB");
  const Raw frame = stream(door, floats(1500), 4000);
  for (size_t n = 0; n < frame.size(); ++n) {
    bool done;
    expand(door, Raw(frame.begin(), frame.begin() + static_cast<long>(n)), 1 << 14, 1 << 14, &done);
    EXPECT_FALSE(done) << n;
  }
}

TEST(Door, MisuseIsRefused) {
  Door door;
  size_t n;
  uint8_t byte = 0;
  EXPECT_EQ(wpr_compress(door.get(), nullptr, 5, &byte, 1, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_decompress(door.get(), &byte, 1, nullptr, 5, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_stream_update(door.get(), &byte, 1, &byte, 1, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_set(door.get(), "engine", "gpu"), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_error(door.get())).find("cpu:scalar"), std::string::npos);
  EXPECT_EQ(wpr_set(door.get(), "block_size", "5000"), WPR_PARAMETER);
  EXPECT_EQ(wpr_set(door.get(), "recipe", "nothing"), WPR_PARAMETER);
  EXPECT_EQ(wpr_get(door.get(), "nothing"), nullptr);
  EXPECT_STREQ(wpr_get(door.get(), "recipe"), "zstd:1");
  wpr_free(nullptr);
}

// A codec's own refusals reach the caller with the block's number.
TEST(Door, DtypeErrorsNameTheCodec) {
  Door door;
  door.set("recipe", "fre");
  const uint64_t shape[] = {2};
  const double values[2] = {1, 2};
  uint8_t dst[100];
  size_t n;
  EXPECT_EQ(wpr_compress_array(door.get(), values, WPR_FLOAT64, 1, shape, dst, sizeof dst, &n),
            WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_error(door.get())).find("fre"), std::string::npos);
}

#ifdef COUNT_ALLOCATIONS
TEST(Pipeline, AllocatesNothingAfterWarmUp) {
  for (const char* recipe : {"store", "lz4:1", "lz4:9", "zstd:3", "deflate:6", "fre:m=5",
                             "shuffle:4+zstd:1", "shuffle:4+lz4:1"}) {
    for (const char* threads : {"1", "2"}) {
      Door door;
      door.set("recipe", recipe);
      door.set("threads", threads);
      door.set("block_size", "64KiB");
      const Raw raw = floats(200000);
      Raw frame(wpr_bound(door.get(), raw.size())), back(raw.size());
      size_t n = 0, m = 0;
      long before = 0;
      for (int i = 0; i < 20; ++i) {
        if (i == 12) before = allocations;
        const uint64_t shape = raw.size() / 4;
        wpr_compress_array(door.get(), raw.data(), WPR_FLOAT32, 1, &shape, frame.data(),
                           frame.size(), &n);
        wpr_decompress(door.get(), frame.data(), n, back.data(), back.size(), &m);
      }
      EXPECT_EQ(m, raw.size());
      // With threads a worker may meet its first block late: a few one-time allocations remain.
      EXPECT_LE(allocations - before, threads[0] == '1' ? 0 : 4) << recipe << " " << threads;
    }
  }
}
#endif

}  // namespace
}  // namespace wirepress
