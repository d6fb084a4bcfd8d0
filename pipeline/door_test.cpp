// SPDX-License-Identifier: Apache-2.0
// The C door: settings and streams, plain bytes and recipes that lose, NULL, and fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "frame/hash.hpp"
#include "pipeline/door_script.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using Data = std::vector<uint8_t>;

class Door {
 public:
  explicit Door(const char* recipe = "zstd:1") {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    EXPECT_EQ(wpr_set(ctx_, "recipe", recipe), WPR_OK) << wpr_error(ctx_);
    EXPECT_EQ(wpr_set(ctx_, "block_size", "1KiB"), WPR_OK);
  }
  ~Door() { wpr_free(ctx_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  wpr_ctx* get() { return ctx_; }
  wpr_status set(const char* key, const char* value) { return wpr_set(ctx_, key, value); }
  std::string error() { return wpr_error(ctx_); }

  // The status of compressing, of a stream's begin where `stream`; *frame may be nullptr.
  wpr_status compress(const Data& raw, wpr_dtype dtype, bool stream, Data* frame = nullptr) {
    Data out(wpr_bound(ctx_, raw.size()) + 64);
    size_t n = 0;
    const uint64_t shape = raw.size() / (dtype == WPR_BYTES ? 1 : 4);
    const wpr_status status = stream ? wpr_stream_begin(ctx_, dtype, out.data(), out.size(), &n)
                                     : wpr_compress_array(ctx_, raw.data(), dtype, WPR_NO_SHAPE,
                                                          &shape, out.data(), out.size(), &n);
    if (frame) frame->assign(out.begin(), out.begin() + static_cast<ptrdiff_t>(n));
    return status;
  }
  Data decompress(const Data& frame, size_t cap) {
    Data out(cap);
    size_t n = 0;
    EXPECT_EQ(wpr_decompress(ctx_, frame.data(), frame.size(), out.data(), cap, &n), WPR_OK)
        << error();
    out.resize(n);
    return out;
  }

 private:
  wpr_ctx* ctx_ = nullptr;
};

Data wave(size_t n) {
  Data raw(4 * n);
  for (size_t i = 0; i < n; ++i) {
    const float value = std::sin(static_cast<float>(i) / 50);
    std::memcpy(&raw[4 * i], &value, 4);
  }
  return raw;
}

TEST(Door, SettingsOfRanksAreCheckedBeforeTheRanksAre) {
  Door door("store");
  for (const char* bound : {"none", "rel:1e-3", "rel=1e-3", "abs:1e-6", "bits:6"})
    EXPECT_EQ(door.set("mpi_error", bound), WPR_OK) << bound;
  for (const char* bound : {"1e-3", "rel", "rel:", "rel:2", "rel:1e-3x", "abs:-1", "abs:inf",
                            "bits:0", "bits:1.5", "bits:53", "relative:1e-3"})
    EXPECT_EQ(door.set("mpi_error", bound), WPR_PARAMETER) << bound;
  for (const char* link : {"auto", "1Gbps", "10Gbit/s", "120MB/s", "100MiB/s"})
    EXPECT_EQ(door.set("mpi_link", link), WPR_OK) << link;
  for (const char* link : {"", "fast", "10", "-1Gbps", "10Gbps!"})
    EXPECT_EQ(door.set("mpi_link", link), WPR_PARAMETER) << link;
}

TEST(Door, RecipesThatLoseNeedADtype) {
  const Data raw = wave(1000);
  for (const char* recipe : {"bx:m=6", "int8", "bf16", "topk", "sz3", "zfp:rate=8", "fre:m=22",
                             "bx:m=23,flush=1", "bx:m=6+zstd:1"}) {
    for (const bool stream : {false, true}) {
      Door door(recipe);
      EXPECT_EQ(door.compress(raw, WPR_BYTES, stream), WPR_PARAMETER) << recipe;
      EXPECT_NE(door.error().find("dtype"), std::string::npos) << door.error();
      EXPECT_EQ(door.compress(raw, WPR_FLOAT32, stream), WPR_OK) << recipe << door.error();
    }
  }
  for (const char* recipe :
       {"bx:m=0", "fre:m=23", "zfp", "planes", "auto:rel=1e-3", "auto:abs=1"}) {
    Door door(recipe);
    Data frame;
    ASSERT_EQ(door.compress(raw, WPR_BYTES, false, &frame), WPR_OK) << recipe << door.error();
    EXPECT_EQ(door.decompress(frame, raw.size()), raw) << recipe;
    EXPECT_EQ(door.compress(raw, WPR_BYTES, true), WPR_OK) << recipe;
  }
}

// Frames of plain bytes that earlier versions made with such recipes are still read.
TEST(Door, FramesOfBytesThatLostAreRead) {
  Door door("bx:m=6");
  const Data raw = wave(1000);
  Data frame;
  ASSERT_EQ(door.compress(raw, WPR_FLOAT32, false, &frame), WPR_OK);
  const Data expected = door.decompress(frame, raw.size());
  wpr_info info;
  ASSERT_EQ(wpr_inspect(door.get(), frame.data(), frame.size(), &info), WPR_OK);
  frame[4] = static_cast<uint8_t>((frame[4] & 0xE0) | WPR_BYTES);
  const uint32_t sum =
      short_hash({reinterpret_cast<const std::byte*>(frame.data()), info.header_size - 4}, 0);
  std::memcpy(&frame[info.header_size - 4], &sum, 4);
  ASSERT_EQ(wpr_inspect(door.get(), frame.data(), frame.size(), &info), WPR_OK) << door.error();
  EXPECT_EQ(info.dtype, WPR_BYTES);
  EXPECT_EQ(door.decompress(frame, raw.size()), expected);
}

TEST(Door, WhetherARecipeLosesDependsOnTheDtype) {
  Door door;
  const auto lossless = [&](const char* recipe, wpr_dtype dtype) {
    int answer = -1;
    EXPECT_EQ(wpr_lossless(door.get(), recipe, dtype, &answer), WPR_OK) << recipe << door.error();
    return answer;
  };
  EXPECT_EQ(lossless("fre:m=23", WPR_FLOAT32), 1);
  EXPECT_EQ(lossless("fre:m=7", WPR_FLOAT32), 0);
  EXPECT_EQ(lossless("fre:m=7", WPR_BFLOAT16), 1);
  EXPECT_EQ(lossless("fre:m=23,flush=1", WPR_FLOAT32), 0);
  EXPECT_EQ(lossless("auto:rel=1e-3", WPR_FLOAT64), 0);
  EXPECT_EQ(lossless("auto:rel=1e-3", WPR_INT32), 1);
  EXPECT_EQ(lossless("auto:abs=1e-3", WPR_BYTES), 1);
}

// Whatever overlaps by a byte, at either side, or wholly.
TEST(Door, BuffersThatOverlapAreRefused) {
  Door door("bx:m=6");
  constexpr size_t kSize = 4096, kValues = kSize / 4;
  const Data raw = wave(kValues);
  Data frame;
  ASSERT_EQ(door.compress(raw, WPR_FLOAT32, false, &frame), WPR_OK);
  const size_t cap = wpr_bound(door.get(), kSize);
  Data room(3 * cap);
  uint8_t* const middle = room.data() + cap;
  const uint64_t shape = kValues;
  const auto refused = [&](const char* call, wpr_status status, bool overlap) {
    EXPECT_EQ(status, overlap ? WPR_PARAMETER : WPR_OK) << call << ": " << door.error();
    if (overlap) {
      EXPECT_NE(door.error().find("overlap"), std::string::npos) << call << door.error();
    }
  };
  struct Place {
    ptrdiff_t of_dst;  // from where the source is
    bool overlap;
  };
  const auto places = [](size_t source, size_t dst) {
    const auto before = static_cast<ptrdiff_t>(dst), behind = static_cast<ptrdiff_t>(source);
    return std::vector<Place>{
        {-before, false}, {1 - before, true}, {0, true}, {behind - 1, true}, {behind, false}};
  };
  size_t n = 0;
  for (const Place& place : places(kSize, cap)) {
    const auto at = [&](const Data& source) {
      std::copy(source.begin(), source.end(), middle);
      return middle + place.of_dst;
    };
    uint8_t* dst = at(raw);
    refused("compress",
            wpr_compress_array(door.get(), middle, WPR_FLOAT32, 1, &shape, dst, cap, &n),
            place.overlap);
    std::vector<float> other(kValues);
    dst = at(raw);
    refused("feedback",
            wpr_compress_feedback(door.get(), other.data(), reinterpret_cast<float*>(middle),
                                  kValues, dst, cap, &n),
            place.overlap);
    ASSERT_EQ(door.set("recipe", "sparse"), WPR_OK) << door.error();
    dst = at(raw);
    refused("steps", wpr_compress_steps(door.get(), raw.data(), middle, kValues, 4, dst, cap, &n),
            place.overlap);
    ASSERT_EQ(door.set("recipe", "bx:m=6"), WPR_OK);
  }
  for (const Place& place : places(frame.size(), kSize)) {
    const auto at = [&] {
      std::copy(frame.begin(), frame.end(), middle);
      return middle + place.of_dst;
    };
    uint8_t* dst = at();
    // A capacity beyond what is written may be anything.
    refused("decompress",
            wpr_decompress(door.get(), middle, frame.size(), dst,
                           place.of_dst < 0 && !place.overlap ? 2 * cap : kSize, &n),
            place.overlap);
    dst = at();
    refused("range", wpr_decompress_range(door.get(), middle, frame.size(), 0, kSize, dst),
            place.overlap);
    std::vector<float> sum(3 * cap / 4);
    uint8_t* const between = reinterpret_cast<uint8_t*>(sum.data()) + cap / 4 * 4;
    std::copy(frame.begin(), frame.end(), between);
    refused(
        "add",
        wpr_decompress_add(door.get(), between, frame.size(),
                           reinterpret_cast<float*>(between + place.of_dst / 4 * 4), kValues, &n),
        place.overlap || place.of_dst % 4 != 0);
  }
  std::vector<float> both(2 * kValues);
  Data out(cap);
  refused("residual",
          wpr_compress_feedback(door.get(), both.data(), both.data() + kValues - 1, kValues,
                                out.data(), cap, &n),
          true);
}

TEST(Door, BoundsOfWhatNoFrameHolds) {
  Door door;
  for (const size_t size : {(size_t{1} << 48) + 1, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_EQ(wpr_bound(door.get(), size), SIZE_MAX) << size;
    EXPECT_EQ(wpr_stream_bound(door.get(), size), SIZE_MAX) << size;
  }
  EXPECT_GT(wpr_bound(door.get(), size_t{1} << 48), size_t{1} << 48);
}

TEST(Door, RecipesThatMeanNothingAreRefused) {
  Door door;
  struct Case {
    const char *recipe, *part;
  };
  for (const Case& it :
       {Case{"shuffle:4+bx:m=6", "first"}, Case{"store+int8", "first"},
        Case{"zstd:1,level=3", "twice"}, Case{"bx:m=3,m=4", "twice"},
        Case{"bx:round=nearest,m=4,round=nearest", "twice"},
        Case{"auto:rel=1e-3,rel=1e-2", "twice"}, Case{"auto:goal=time,goal=time", "twice"},
        Case{"zstd+", "ends in"}, Case{"bx:m=3,", "ends in"}, Case{"auto:rel=1e-3,", "ends in"}}) {
    EXPECT_EQ(door.set("recipe", it.recipe), WPR_PARAMETER) << it.recipe;
    EXPECT_NE(door.error().find(it.part), std::string::npos) << door.error();
  }
}

// Every option, set in the midst of a stream in either direction.
TEST(Door, AStreamKeepsTheSettingsItBeganWith) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> script(200);
    for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
    DoorScript(script.data(), script.size()).run();
  }
}

TEST(Door, ThreadsSetInMidStream) {
  const Data raw = wave(100000);
  for (const char* later : {"1", "8"}) {
    for (const char* recipe : {"lz4", "bx:m=5", "auto"}) {
      Door door(recipe);
      ASSERT_EQ(door.set("threads", "2"), WPR_OK);
      Data frame;
      size_t n = 0;
      const auto room = [&](size_t size) {
        frame.resize(frame.size() + wpr_stream_bound(door.get(), size));
        return frame.data() + frame.size() - wpr_stream_bound(door.get(), size);
      };
      const auto cut = [&](size_t size) {
        frame.resize(frame.size() - wpr_stream_bound(door.get(), size) + n);
      };
      ASSERT_EQ(
          wpr_stream_begin(door.get(), WPR_FLOAT32, room(0), wpr_stream_bound(door.get(), 0), &n),
          WPR_OK);
      cut(0);
      for (const char* threads : {later, "3"}) {
        ASSERT_EQ(door.set("threads", threads), WPR_OK);
        ASSERT_EQ(door.set("block_size", threads[0] == '3' ? "64KiB" : "2KiB"), WPR_OK);
        const size_t half = raw.size() / 2;
        const uint8_t* part = raw.data() + (threads[0] == '3' ? half : 0);
        ASSERT_EQ(wpr_stream_update(door.get(), part, half, room(half),
                                    wpr_stream_bound(door.get(), half), &n),
                  WPR_OK)
            << door.error();
        cut(half);
      }
      ASSERT_EQ(wpr_stream_end(door.get(), room(0), wpr_stream_bound(door.get(), 0), &n), WPR_OK);
      cut(0);
      ASSERT_EQ(door.set("threads", "2"), WPR_OK);
      const Data expected = door.decompress(frame, raw.size());
      EXPECT_EQ(expected.size(), raw.size());
      EXPECT_EQ(expected == raw, std::string(recipe) != "bx:m=5");
      ASSERT_EQ(wpr_expand_begin(door.get()), WPR_OK);
      Data back(raw.size());
      size_t at = 0, used = 0;
      for (int done = 0, step = 0; !done; ++step) {
        ASSERT_LT(step, 100000);
        ASSERT_EQ(door.set("threads", step % 2 ? later : "16"), WPR_OK);
        size_t consumed = 0;
        ASSERT_EQ(wpr_expand_update(door.get(), frame.data() + used,
                                    std::min<size_t>(5000, frame.size() - used), &consumed,
                                    back.data() + at, back.size() - at, &n, &done),
                  WPR_OK)
            << door.error();
        used += consumed;
        at += n;
      }
      EXPECT_EQ(back, expected);
    }
  }
}

TEST(Door, NullIsRefused) {
  Door door;
  wpr_ctx* ctx = door.get();
  uint8_t byte = 0;
  float value = 0;
  size_t n = 0;
  int flag = 0;
  uint64_t size = 0;
  const uint64_t shape = 1;
  void (*const row)(void*, const wpr_choice*) = [](void*, const wpr_choice*) {};
  wpr_info info;
  for (wpr_ctx* c : {ctx, static_cast<wpr_ctx*>(nullptr)}) {
    size_t* const none = c ? nullptr : &n;
    const auto refused = [&](wpr_status status) {
      EXPECT_EQ(status, WPR_PARAMETER);
      EXPECT_NE(std::string(wpr_error(c)).find("is NULL"), std::string::npos) << wpr_error(c);
    };
    refused(wpr_set(c, c ? nullptr : "seed", "1"));
    refused(wpr_set(c, "seed", c ? nullptr : "1"));
    refused(wpr_compress(c, &byte, 1, &byte, 1, none));
    refused(wpr_compress_array(c, &byte, WPR_BYTES, 1, c ? nullptr : &shape, &byte, 1, &n));
    refused(wpr_decompress(c, &byte, 1, &byte, 1, none));
    refused(wpr_decompress_range(c, &byte, 1, 0, 1, c ? nullptr : &byte));
    refused(wpr_compress_feedback(c, &value, c ? nullptr : &value, 1, &byte, 1, &n));
    refused(wpr_compress_feedback(c, &value, &value, 1, &byte, 1, none));
    refused(wpr_decompress_add(c, &byte, 1, &value, 1, none));
    refused(
        wpr_compress_feedback_typed(c, &byte, WPR_BFLOAT16, c ? nullptr : &value, 1, &byte, 1, &n));
    refused(wpr_compress_feedback_typed(c, &byte, WPR_BFLOAT16, &value, 1, &byte, 1, none));
    refused(wpr_decompress_add_typed(c, &byte, 1, &byte, WPR_BFLOAT16, 1, none));
    refused(wpr_add(c, &byte, 1, &byte, 1, &byte, 1, none));
    refused(wpr_compress_steps(c, &byte, &byte, 1, 1, &byte, 1, none));
    refused(wpr_compress_steps(c, c ? nullptr : &byte, &byte, 1, 1, &byte, 1, &n));
    refused(wpr_compress_steps(c, &byte, c ? nullptr : &byte, 1, 1, &byte, 1, &n));
    refused(wpr_take_steps(c, &byte, 1, &byte, 1, none));
    refused(wpr_inspect(c, &byte, 1, c ? nullptr : &info));
    refused(wpr_stream_begin(c, WPR_BYTES, &byte, 1, none));
    refused(wpr_stream_update(c, &byte, 1, &byte, 1, none));
    refused(wpr_stream_end(c, &byte, 1, none));
    refused(wpr_expand_update(c, &byte, 1, none, &byte, 1, &n, &flag));
    refused(wpr_expand_update(c, &byte, 1, &n, &byte, 1, none, &flag));
    refused(wpr_lossless(c, c ? nullptr : "lz4", WPR_BYTES, &flag));
    refused(wpr_lossless(c, "lz4", WPR_BYTES, c ? nullptr : &flag));
    refused(wpr_explain(c, &byte, WPR_BYTES, 1, &shape, c ? nullptr : row, nullptr));
    EXPECT_EQ(wpr_get(c, c ? nullptr : "seed"), nullptr);
    EXPECT_EQ(wpr_origin(c, c ? nullptr : "seed"), nullptr);
    wpr_get_stats(c, nullptr);
  }
  EXPECT_EQ(wpr_create(nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_expand_begin(nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_bound(nullptr, 1), 0u);
  EXPECT_EQ(wpr_stream_bound(nullptr, 1), 0u);
  EXPECT_EQ(wpr_raw_size(&byte, 1, nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_raw_size(nullptr, 1, &size), WPR_PARAMETER);
  wpr_reset_stats(nullptr);
  EXPECT_EQ(wpr_codec_at(0, nullptr), 0);
  EXPECT_EQ(wpr_codec_param_at(1, 0, nullptr), 0);
  EXPECT_EQ(wpr_codec_kernel_at(0, 0, nullptr), 0);
  EXPECT_EQ(wpr_engine_at(0, nullptr), 0);
  EXPECT_EQ(wpr_option_at(0, nullptr), 0);
}

TEST(Door, StepsAreWholeWords) {
  for (const char* recipe : {"store", "zstd:1", "sparse"}) {
    Door door(recipe);
    for (const size_t size : {4, 6, 8, 2050}) {
      const Data steps(size, 1);
      Data frame(wpr_stream_bound(door.get(), size)), words(4096);
      size_t n = 0, more = 0, used = 0;
      ASSERT_EQ(wpr_stream_begin(door.get(), WPR_INT32, frame.data(), frame.size(), &n), WPR_OK);
      const auto rest = [&] { return frame.data() + n; };
      const wpr_status updated =
          wpr_stream_update(door.get(), steps.data(), size, rest(), frame.size() - n, &more);
      n += more;
      const wpr_status ended = wpr_stream_end(door.get(), rest(), frame.size() - n, &more);
      n += more;
      if (updated != WPR_OK || ended != WPR_OK) continue;  // the codec refused them before
      const wpr_status taken =
          wpr_take_steps(door.get(), frame.data(), n, words.data(), words.size(), &used);
      EXPECT_EQ(taken, size % 4 == 0 ? WPR_OK : WPR_PARAMETER) << recipe << " " << size;
      if (size % 4 == 0) {
        EXPECT_EQ(used, size);
      } else {
        EXPECT_EQ(words, Data(4096)) << recipe << " " << size;
      }
    }
  }
}

TEST(Door, WhatIsNullIsNamed) {
  Door door("sparse");
  Data words(8), frame(200);
  size_t n;
  const auto compress = [&](const void* before, const void* after) {
    EXPECT_EQ(wpr_compress_steps(door.get(), before, after, 2, 4, frame.data(), 200, &n),
              WPR_PARAMETER);
    return door.error();
  };
  EXPECT_EQ(compress(nullptr, words.data()), "before is NULL, 8 bytes");
  EXPECT_EQ(compress(words.data(), nullptr), "after is NULL, 8 bytes");
  EXPECT_EQ(wpr_hash(nullptr, 8, 1), 0u);
  EXPECT_NE(wpr_hash(nullptr, 0, 1), 0u);
  EXPECT_EQ(wpr_hash(nullptr, 0, 1), wpr_hash(words.data(), 0, 1));
}

TEST(Door, EnumsOutOfRangeAreRefused) {
  Door door;
  wpr_ctx* const ctx = door.get();
  std::byte byte{};
  size_t n;
  int flag;
  const auto dtype = static_cast<wpr_dtype>(77);
  EXPECT_EQ(wpr_compress_array(ctx, &byte, dtype, 0, nullptr, &byte, 1, &n), WPR_PARAMETER);
  EXPECT_STREQ(wpr_error(ctx), "dtype 77 is not known");
  EXPECT_EQ(wpr_stream_begin(ctx, dtype, &byte, 1, &n), WPR_PARAMETER);
  EXPECT_EQ(wpr_lossless(ctx, "lz4", dtype, &flag), WPR_PARAMETER);
  EXPECT_STREQ(wpr_status_name(static_cast<wpr_status>(77)), "unknown");
  for (const int none : {-1, WPR_COMPLEX128 + 1, 77}) {
    EXPECT_EQ(wpr_dtype_size(static_cast<wpr_dtype>(none)), 0u);
    EXPECT_EQ(wpr_dtype_name(static_cast<wpr_dtype>(none)), nullptr);
  }
}

TEST(Door, EveryDtypeHasASizeAndAName) {
  std::set<std::string> names;
  for (int code = WPR_BYTES; code <= WPR_COMPLEX128; ++code) {
    const auto dtype = static_cast<wpr_dtype>(code);
    const std::string name = wpr_dtype_name(dtype);
    EXPECT_TRUE(names.insert(name).second) << name;
    // The name ends in the number of bits, but for bool, bytes and the two of 8 bits.
    const size_t digit = name.find_first_of("0123456789");
    const size_t bits = digit == std::string::npos ? 8 : std::stoul(name.substr(digit));
    EXPECT_EQ(8 * wpr_dtype_size(dtype), bits) << name;
  }
  EXPECT_STREQ(wpr_dtype_name(WPR_FLOAT8_E4M3), "float8_e4m3");
  EXPECT_STREQ(wpr_dtype_name(WPR_COMPLEX128), "complex128");
}

// Every codec for every dtype, whole and as a stream: right or refused, by all doors alike.
TEST(Door, EveryCodecAndDtype) {
  std::vector<std::string> recipes = {
      "bx:m=0",        "fre:m=23",    "zfp:accuracy=1e-2",  "zfp:rate=12",
      "planes+zstd:1", "shuffle+lz4", "sz3:abs=1e-2+zstd:1"};
  wpr_codec_info codec;
  for (size_t i = 0; wpr_codec_at(i, &codec); ++i) recipes.push_back(codec.name);
  const Data raw = wave(4 * 600);
  for (const std::string& recipe : recipes) {
    for (int code = WPR_BYTES; code <= WPR_COMPLEX128; ++code) {
      const auto dtype = static_cast<wpr_dtype>(code);
      const std::string what = recipe + ", dtype " + std::to_string(code);
      Door door(recipe.c_str());
      wpr_ctx* ctx = door.get();
      ASSERT_EQ(door.set("threads", code % 2 ? "1" : "3"), WPR_OK);
      int lossless = 0;
      const bool known = wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) == WPR_OK;
      const bool taken = known && (lossless || dtype != WPR_BYTES);
      // As an array of one dimension, and of two.
      Data frame(wpr_bound(ctx, raw.size())), back(raw.size()), streamed(raw.size());
      size_t n = 0;
      const uint64_t elements = raw.size() / dtype_size(static_cast<DType>(code));
      for (const int n_dims : {2, 1}) {
        const uint64_t shape[] = {n_dims == 1 ? elements : 6, elements / 6};
        const wpr_status status = wpr_compress_array(ctx, raw.data(), dtype, n_dims, shape,
                                                     frame.data(), frame.size(), &n);
        ASSERT_EQ(status, taken ? WPR_OK : WPR_PARAMETER) << what << door.error();
        if (!taken) continue;
        ASSERT_EQ(wpr_decompress(ctx, frame.data(), n, back.data(), back.size(), &n), WPR_OK);
        ASSERT_EQ(n, raw.size()) << what;
        EXPECT_TRUE(!lossless || back == raw) << what;
      }
      // As a stream: the blocks are those of one dimension.
      Data out(3 * wpr_stream_bound(ctx, raw.size()));
      size_t at = 0;
      const wpr_status begun = wpr_stream_begin(ctx, dtype, out.data(), out.size(), &at);
      ASSERT_EQ(begun, taken ? WPR_OK : WPR_PARAMETER) << what;
      if (!taken) continue;
      for (size_t from = 0; from < raw.size(); from += 1111, at += n) {
        const size_t size = std::min<size_t>(1111, raw.size() - from);
        ASSERT_EQ(wpr_stream_update(ctx, &raw[from], size, &out[at], out.size() - at, &n), WPR_OK);
      }
      ASSERT_EQ(wpr_stream_end(ctx, &out[at], out.size() - at, &n), WPR_OK);
      ASSERT_EQ(wpr_decompress(ctx, out.data(), at + n, streamed.data(), streamed.size(), &n),
                WPR_OK)
          << what << door.error();
      EXPECT_EQ(streamed, back) << what;
    }
  }
}

// Says yes when it is asked for the nth time.
struct Asked {
  explicit Asked(int n) : left(n) {}
  int left;
  static int ask(void* self) { return --static_cast<Asked*>(self)->left <= 0; }
};

TEST(Door, CallsMayBeInterrupted) {
  const Data raw = wave(1 << 16);
  for (const char* threads : {"1", "3"}) {
    for (const char* recipe : {"zstd:1", "auto"}) {
      Door door(recipe);
      ASSERT_EQ(door.set("threads", threads), WPR_OK);
      Data frame, out(raw.size());
      ASSERT_EQ(door.compress(raw, WPR_FLOAT32, false, &frame), WPR_OK);
      size_t n = 0;
      const bool alone = *threads == '1';  // else other threads may leave it one question
      for (const int when : alone ? std::vector{1, 2, 5} : std::vector{1}) {
        Asked asked(when);
        EXPECT_EQ(wpr_set_interrupt(door.get(), Asked::ask, &asked), WPR_OK);
        EXPECT_EQ(door.compress(raw, WPR_FLOAT32, false), WPR_INTERRUPTED);
        EXPECT_EQ(door.error(), "the call was interrupted");
        asked.left = when;
        EXPECT_EQ(
            wpr_decompress(door.get(), frame.data(), frame.size(), out.data(), out.size(), &n),
            WPR_INTERRUPTED);
        asked.left = when;
        EXPECT_EQ(wpr_decompress_range(door.get(), frame.data(), frame.size(), 7, raw.size() - 9,
                                       out.data()),
                  WPR_INTERRUPTED);
      }
      Asked never(1 << 30);
      EXPECT_EQ(wpr_set_interrupt(door.get(), Asked::ask, &never), WPR_OK);
      EXPECT_EQ(door.decompress(frame, raw.size()), raw);
      if (alone) {
        EXPECT_LT(never.left, 1 << 30);
      }
      Data again;
      EXPECT_EQ(wpr_set_interrupt(door.get(), nullptr, nullptr), WPR_OK);
      EXPECT_EQ(door.compress(raw, WPR_FLOAT32, false, &again), WPR_OK);
      EXPECT_EQ(again, frame);
    }
  }
}

TEST(Door, AnInterruptedStreamHasEnded) {
  const Data raw = wave(1 << 20);
  Door door;
  Data out(wpr_stream_bound(door.get(), raw.size()));
  size_t n = 0;
  ASSERT_EQ(door.compress(raw, WPR_FLOAT32, true), WPR_OK);
  Asked asked(3);
  EXPECT_EQ(wpr_set_interrupt(door.get(), Asked::ask, &asked), WPR_OK);
  const auto update = [&] {
    return wpr_stream_update(door.get(), raw.data(), raw.size(), out.data(), out.size(), &n);
  };
  EXPECT_EQ(update(), WPR_INTERRUPTED);
  EXPECT_EQ(update(), WPR_PARAMETER);
}

// The child has none of its parent's threads, and makes its own.
TEST(Door, AForkedChildHasThreadsOfItsOwn) {
  Door door("shuffle:4+lz4");
  ASSERT_EQ(door.set("threads", "3"), WPR_OK);
  const Data raw = wave(100000);
  Data frame;
  ASSERT_EQ(door.compress(raw, WPR_FLOAT32, false, &frame), WPR_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    Data again;
    bool good = door.compress(raw, WPR_FLOAT32, false, &again) == WPR_OK && again == frame &&
                door.decompress(frame, raw.size()) == raw;
    {
      Door other("lz4");
      good = good && other.compress(raw, WPR_BYTES, false) == WPR_OK;
    }
    door.~Door();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(door.decompress(frame, raw.size()), raw);
}

}  // namespace
}  // namespace wirepress
