// SPDX-License-Identifier: Apache-2.0
// Tests of the recipe auto: what it chooses, and that its bytes do not depend on threads.
#include "pipeline/auto.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codecs/common/random.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using Data = std::vector<uint8_t>;

Data noise(size_t n) {
  Data data(n);
  std::mt19937_64 random(3);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

Data wave(size_t n) {
  Data data(n);
  for (size_t i = 0; i + 4 <= n; i += 4) {
    const float value = std::sin(static_cast<float>(i) * 0.0007f) * 1e-3f;
    std::memcpy(&data[i], &value, 4);
  }
  return data;
}

// Zeros, a wave and noise, each a few groups of 1 KiB blocks long.
Data mixed() {
  Data data(40000);
  for (const Data& part : {wave(60000), noise(50000), Data(30000), wave(20000)})
    data.insert(data.end(), part.begin(), part.end());
  return data;
}

class Door {
 public:
  explicit Door(const std::string& recipe, const char* threads = "1") {
    EXPECT_EQ(wpr_create(&ctx_), WPR_OK);
    set("recipe", recipe.c_str());
    set("threads", threads);
    set("block_size", "1KiB");
  }
  ~Door() { wpr_free(ctx_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  wpr_status set(const char* key, const char* value) { return wpr_set(ctx_, key, value); }
  std::string error() { return wpr_error(ctx_); }

  Data compress(const Data& raw, wpr_dtype dtype) {
    const uint64_t n = raw.size() / (dtype == WPR_FLOAT32 ? 4 : 1);
    Data frame(wpr_bound(ctx_, raw.size()));
    size_t size = 0;
    EXPECT_EQ(wpr_compress_array(ctx_, raw.data(), dtype, WPR_NO_SHAPE, &n, frame.data(),
                                 frame.size(), &size),
              WPR_OK)
        << error();
    frame.resize(size);
    return frame;
  }
  Data stream(const Data& raw, wpr_dtype dtype, size_t piece) {
    Data frame(wpr_stream_bound(ctx_, raw.size()) + raw.size());
    size_t at = 0, size = 0;
    EXPECT_EQ(wpr_stream_begin(ctx_, dtype, frame.data(), frame.size(), &at), WPR_OK);
    for (size_t i = 0; i < raw.size(); i += piece) {
      EXPECT_EQ(wpr_stream_update(ctx_, &raw[i], std::min(piece, raw.size() - i), &frame[at],
                                  frame.size() - at, &size),
                WPR_OK)
          << error();
      at += size;
    }
    EXPECT_EQ(wpr_stream_end(ctx_, &frame[at], frame.size() - at, &size), WPR_OK) << error();
    frame.resize(at + size);
    return frame;
  }
  Data decompress(const Data& frame, size_t n) {
    Data raw(n);
    size_t size = 0;
    EXPECT_EQ(wpr_decompress(ctx_, frame.data(), frame.size(), raw.data(), n, &size), WPR_OK)
        << error();
    EXPECT_EQ(size, n);
    return raw;
  }
  std::vector<wpr_choice> explain(const Data& raw, wpr_dtype dtype) {
    std::vector<wpr_choice> rows;
    const uint64_t n = raw.size() / (dtype == WPR_FLOAT32 ? 4 : 1);
    EXPECT_EQ(wpr_explain(
                  ctx_, raw.data(), dtype, WPR_NO_SHAPE, &n,
                  [](void* user, const wpr_choice* choice) {
                    static_cast<std::vector<wpr_choice>*>(user)->push_back(*choice);
                  },
                  &rows),
              WPR_OK)
        << error();
    return rows;
  }
  wpr_ctx* get() { return ctx_; }

 private:
  wpr_ctx* ctx_ = nullptr;
};

TEST(Auto, LosesNothingWithoutABound) {
  const Data raw = mixed();
  for (const char* recipe : {"auto", "auto:goal=ratio", "auto:goal=speed", "auto:link=100Mbps"}) {
    SCOPED_TRACE(recipe);
    for (const wpr_dtype dtype : {WPR_BYTES, WPR_FLOAT32}) {
      Door door(recipe);
      const Data frame = door.compress(raw, dtype);
      EXPECT_EQ(door.decompress(frame, raw.size()), raw);
      EXPECT_LT(frame.size(), raw.size());
    }
  }
}

TEST(Auto, BytesDoNotDependOnThreads) {
  const Data raw = mixed();
  // Goals that no speed decides: the machine may become busier between two frames.
  for (const char* recipe : {"auto:link=1Mbps", "auto:goal=ratio", "auto:link=1Mbps,threads=8"}) {
    Door one(recipe, "1"), four(recipe, "4");
    EXPECT_EQ(one.compress(raw, WPR_FLOAT32), four.compress(raw, WPR_FLOAT32)) << recipe;
  }
}

TEST(Auto, StreamsChooseByGroup) {
  const Data raw = mixed();
  Data first;
  for (const char* threads : {"1", "3"}) {
    for (const size_t piece : {size_t{777}, size_t{20000}, raw.size()}) {
      Door door("auto:goal=ratio", threads);
      const Data frame = door.stream(raw, WPR_FLOAT32, piece);
      if (first.empty()) first = frame;
      EXPECT_EQ(frame, first) << threads << " threads, pieces of " << piece;
      EXPECT_EQ(door.decompress(frame, raw.size()), raw);
      EXPECT_LT(frame.size(), raw.size());
    }
  }
}

TEST(Auto, RangesOfBlocksWithTheirOwnRecipe) {
  const Data raw = mixed();
  Door door("auto:goal=ratio");
  const Data frame = door.compress(raw, WPR_BYTES);
  for (const size_t offset : {size_t{0}, size_t{39990}, size_t{99999}, size_t{150001}}) {
    Data part(3000);
    ASSERT_EQ(wpr_decompress_range(door.get(), frame.data(), frame.size(), offset, part.size(),
                                   part.data()),
              WPR_OK)
        << door.error();
    EXPECT_TRUE(std::equal(part.begin(), part.end(), raw.begin() + static_cast<ptrdiff_t>(offset)));
  }
}

TEST(Auto, ExplainsWhatItChose) {
  const Data raw = mixed();
  Door door("auto:goal=ratio");
  std::set<std::string> chosen;
  uint64_t next = 0;
  for (const wpr_choice& row : door.explain(raw, WPR_BYTES)) {
    if (!row.chosen) continue;
    EXPECT_EQ(row.offset, next);
    next = row.offset + row.size;
    EXPECT_GE(row.ratio, 1);
    EXPECT_GT(row.compress_rate, 0);
    EXPECT_GT(row.finish, 0);
    chosen.insert(row.why);
  }
  EXPECT_EQ(next, raw.size());
  EXPECT_EQ(chosen, std::set<std::string>{""}) << "chose what it did not try";
}

Data normal(size_t n) {
  Data data(n);
  std::mt19937 random(3);
  std::normal_distribution<float> value;
  for (size_t i = 0; i + 4 <= n; i += 4) {
    const float x = value(random);
    std::memcpy(&data[i], &x, 4);
  }
  return data;
}

// What a frame of one group does: whether it takes what an earlier frame chose.
class Frames {
 public:
  bool reuse(const Data& raw, const char* goal = "auto", uint8_t block_log = 19) {
    Goal parsed;
    Recipe recipe;
    Header header;
    header.raw_size = raw.size();
    header.dtype = DType::kFloat32;
    header.block_log = block_log;
    EXPECT_TRUE(parse_goal(goal, 1e9, &parsed).ok());
    EXPECT_TRUE(chooser_.begin(parsed, header, "cpu").ok());
    EXPECT_TRUE(chooser_.choose(std::as_bytes(std::span(raw)), header.block_size(), &recipe).ok());
    return chooser_.reused();
  }

 private:
  Chooser chooser_;
};

TEST(Auto, AChoiceStandsForFramesThatLookAlike) {
  const Data raw = normal(1 << 20), half = normal(5 << 17), eighth = normal(1 << 17);
  Frames frames;
  EXPECT_FALSE(frames.reuse(raw));
  for (int i = 1; i < 16; ++i) EXPECT_TRUE(frames.reuse(i % 2 ? raw : half)) << i;
  EXPECT_FALSE(frames.reuse(raw)) << "after 15 frames data are tried anew";
  EXPECT_FALSE(frames.reuse(eighth)) << "finish times are those of another size";
  EXPECT_TRUE(frames.reuse(eighth));
  EXPECT_TRUE(frames.reuse(raw)) << "two sizes are known side by side";
  EXPECT_FALSE(frames.reuse(noise(1 << 20)));
  EXPECT_FALSE(frames.reuse(raw, "auto:link=10GB/s")) << "another goal";
  EXPECT_TRUE(frames.reuse(raw, "auto:link=10GB/s"));
  EXPECT_FALSE(frames.reuse(raw, "auto:link=10GB/s", 16)) << "other blocks";
  EXPECT_FALSE(frames.reuse(raw, "auto:goal=ratio"));
  EXPECT_FALSE(frames.reuse(raw, "auto:goal=ratio")) << "where bytes count all frames are tried";
}

// What explain shows are trials, though frames before had the same data.
TEST(Auto, ExplainsAnew) {
  const Data raw = wave(1 << 20);
  Door door("auto");
  door.set("block_size", "512KiB");
  for (int turn = 0; turn < 3; ++turn) {
    door.compress(raw, WPR_FLOAT32);
    for (const wpr_choice& row : door.explain(raw, WPR_FLOAT32)) EXPECT_FALSE(row.reused);
  }
}

// A look takes 1 KiB of four windows of a group; here those alone are zeros.
TEST(Auto, GapsUnderTheLookAreNotTheGroup) {
  Door door("auto");
  door.set("block_size", "64KiB");
  Data raw(4 << 20);
  const size_t group = door.explain(raw, WPR_BYTES).front().size;
  ASSERT_GT(group, size_t{128} << 10);
  raw = noise(raw.size());
  const size_t step = (group - (32 << 10)) / 3 / 64 * 64;
  for (size_t at = 0; at + group <= raw.size(); at += group)
    for (size_t w = 0; w < 4; ++w) std::fill_n(raw.begin() + at + step * w, 2048, 0);
  for (const wpr_choice& row : door.explain(raw, WPR_BYTES)) {
    EXPECT_LT(row.zero_lines, 0.5);
    EXPECT_LT(row.ratio, 2) << row.offset;
  }
}

// What was tried on one group says what others of the frame take that have more or fewer gaps.
TEST(Auto, GroupsThatDifferInGapsAreCalculated) {
  Door door("auto:link=50Mbps");
  door.set("block_size", "64KiB");
  const size_t group = door.explain(Data(4 << 20), WPR_BYTES).front().size;
  Data raw = noise(3 * group);
  for (size_t i = 0; i < raw.size(); ++i) raw[i] &= 15;  // shrinks to half
  const auto clear = [&](size_t which, size_t in_eight) {
    for (size_t line = 0; line < group / 64; ++line)
      if (line % 8 < in_eight) std::fill_n(raw.begin() + which * group + line * 64, 64, 0);
  };
  clear(0, 2);
  clear(1, 6);
  std::vector<double> ratios;
  for (const wpr_choice& row : door.explain(raw, WPR_BYTES))
    if (row.chosen) ratios.push_back(row.ratio);
  ASSERT_EQ(ratios.size(), 3u);
  EXPECT_NEAR(ratios[1] / ratios[0], 3, 0.4);
  EXPECT_NEAR(ratios[2] / ratios[0], 0.75, 0.1);
  EXPECT_EQ(door.decompress(door.compress(raw, WPR_BYTES), raw.size()), raw);
}

// Blocks of a group overlap with those of the next one.
TEST(Auto, AFrameFillsItsPipelineOnce) {
  Door door("auto:link=100Gbps");
  door.set("block_size", "64KiB");
  const Data raw = noise(4 << 20);
  const auto store = [&](const Data& data) {  // of the first group; texts are gone behind the call
    const uint64_t n = data.size();
    std::vector<wpr_choice> rows;
    wpr_explain(
        door.get(), data.data(), WPR_BYTES, WPR_NO_SHAPE, &n,
        [](void* user, const wpr_choice* choice) {
          if (std::string_view(choice->recipe) == "store")
            static_cast<std::vector<wpr_choice>*>(user)->push_back(*choice);
        },
        &rows);
    EXPECT_FALSE(rows.empty());
    return rows.empty() ? wpr_choice{} : rows.front();
  };
  const wpr_choice whole = store(raw);
  const wpr_choice group = store(Data(raw.begin(), raw.begin() + whole.size));
  EXPECT_EQ(whole.size, group.size);
  EXPECT_LT(whole.finish, group.finish);
}

// Rows whose exponents repeat: what a match finder takes is timed where it might win.
TEST(Auto, RowsThatRepeat) {
  constexpr size_t kRow = 650;
  const Data random = noise((8 << 20) + 300000);  // the last group is small
  std::vector<float> values(random.size() / 4);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(1 + random[i] / 256.0f, random[random.size() - 1 - i % kRow] % 16);
  Data raw(random.size());
  std::memcpy(raw.data(), values.data(), raw.size());
  for (const char* link : {"1Gbps", "5Gbps", "10Gbps", "20Gbps"}) {
    Door door(std::string("auto:link=") + link);
    door.set("block_size", "512KiB");
    for (const wpr_choice& row : door.explain(raw, WPR_FLOAT32)) {
      EXPECT_TRUE(!row.chosen || *row.why == 0) << link;
      EXPECT_TRUE(*row.why != 0 || row.compress_rate > 0) << link;
    }
    EXPECT_EQ(door.decompress(door.compress(raw, WPR_FLOAT32), raw.size()), raw);
  }
}

// zstd:1 is as fast as the usual DEFLATE and smaller; ISA-L's is faster.
TEST(Auto, TriesDeflateByIsal) {
  const auto tries = [](const char* engine) {
    Door door("auto");
    EXPECT_EQ(door.set("engine", engine), WPR_OK) << door.error();
    const Data raw = wave(100000);
    const uint64_t n = raw.size();
    bool tried = false;
    wpr_explain(
        door.get(), raw.data(), WPR_BYTES, WPR_NO_SHAPE, &n,
        [](void* user, const wpr_choice* choice) {
          *static_cast<bool*>(user) |= std::string_view(choice->recipe) == "deflate:1";
        },
        &tried);
    return tried;
  };
  EXPECT_FALSE(tries("cpu"));
  Door door("auto");
  if (door.set("engine", "cpu:isal") != WPR_OK) GTEST_SKIP() << door.error();
  EXPECT_TRUE(tries("cpu:isal"));
}

// The low halves of float32 kept as float64 are alike; its elements are not.
TEST(Auto, ElementsRepeatNotTheirHalves) {
  const Data random = noise(1 << 20);
  std::vector<double> wide(random.size() / 4), twice(wide.size());
  for (size_t i = 0; i < wide.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &random[4 * i], 4);
    wide[i] = 1 + std::ldexp(static_cast<float>(bits % (1 << 23)), -23);
    twice[i] = wide[i / 2];
  }
  const auto matches = [](const std::vector<double>& values, DType dtype) {
    return features_of(std::as_bytes(std::span(values)), dtype).matches;
  };
  EXPECT_LT(matches(wide, DType::kFloat64), 0.1);
  EXPECT_GT(matches(twice, DType::kFloat64), 0.4);
  EXPECT_GT(matches(wide, DType::kBytes), 0.2);
}

TEST(Auto, NoiseIsLeftAlone) {
  Door door("auto");
  size_t n = 0;
  for (const wpr_choice& row : door.explain(noise(100000), WPR_BYTES)) {
    n += row.chosen != 0;
    EXPECT_EQ(row.ratio, 1);
  }
  EXPECT_GT(n, 0u);
}

// Data in which match finders find more in a block than in a window, and data in which they do not.
// Not all of a frame is tried: groups of blocks that look alike share what was tried on one.
TEST(Auto, TheSmallestIsNoLargerThanWhatItCouldHaveTaken) {
  for (const size_t size : {size_t{40000}, size_t{400000}, size_t{4000000}}) {
    Data sine(size), noise(size);
    for (size_t i = 0; i + 4 <= size; i += 4) {
      const float wave_now = std::sin(static_cast<float>(i) / 200);
      const float drawn = static_cast<float>(random_bits(1, i)) - 2e9f;
      std::memcpy(&sine[i], &wave_now, 4);
      std::memcpy(&noise[i], &drawn, 4);
    }
    for (const Data& raw : {wave(size), sine, noise}) {
      const size_t chosen = Door("auto:goal=ratio").compress(raw, WPR_FLOAT32).size();
      for (const char* recipe : {"planes", "bx:m=23", "zstd:1", "zstd:9", "lz4", "shuffle:4+lz4",
                                 "shuffle:4+zstd:1", "shuffle:4+zstd:9"})
        EXPECT_LE(static_cast<double>(chosen),
                  1.03 * static_cast<double>(Door(recipe).compress(raw, WPR_FLOAT32).size()))
            << recipe << " of " << size << " bytes";
    }
  }
}

// What is kept of an array is not for one that has the same rows but cannot be cut between them.
template <typename T>
void round_trips(const char* recipe, wpr_dtype dtype, double scale, double most) {
  constexpr uint64_t kRow = 512;
  std::vector<T> field(300 * kRow);
  for (size_t i = 0; i < field.size(); ++i) {
    const auto row = static_cast<double>(i / kRow), column = static_cast<double>(i % kRow);
    field[i] = static_cast<T>(scale * std::sin(row / 20) * std::cos(column / 30));
  }
  wpr_ctx* ctx = nullptr;
  ASSERT_EQ(wpr_create(&ctx), WPR_OK);
  ASSERT_EQ(wpr_set(ctx, "recipe", recipe), WPR_OK) << wpr_error(ctx);
  for (const uint64_t rows : {0, 300, 1, 40, 0, 200, 300}) {
    const uint64_t shape[2] = {rows, kRow};
    const size_t size = rows * kRow * sizeof(T);
    std::vector<uint8_t> frame(wpr_bound(ctx, size));
    std::vector<T> back(rows * kRow);
    size_t written = 0, expanded = 0;
    ASSERT_EQ(wpr_compress_array(ctx, field.data(), dtype, 2, shape, frame.data(), frame.size(),
                                 &written),
              WPR_OK)
        << wpr_error(ctx);
    ASSERT_EQ(wpr_decompress(ctx, frame.data(), written, back.data(), size, &expanded), WPR_OK)
        << rows << " rows: " << wpr_error(ctx);
    for (size_t i = 0; i < back.size(); ++i) {
      const double error = static_cast<double>(back[i]) - static_cast<double>(field[i]);
      ASSERT_LE(std::abs(error), most) << rows << " rows, value " << i;
    }
  }
  wpr_free(ctx);
}

TEST(Auto, ShapesOfOneContext) {
  round_trips<float>("auto:abs=1e-3", WPR_FLOAT32, 1, 1e-3);
  round_trips<float>("auto:abs=1e-3,goal=ratio", WPR_FLOAT32, 1, 1e-3);  // takes sz3
  round_trips<float>("auto:goal=ratio", WPR_FLOAT32, 1, 0);
  round_trips<int32_t>("auto:goal=ratio", WPR_INT32, 1e8, 0);  // takes zfp
}

TEST(Auto, LossyOnlyWithinTheBound) {
  const Data raw = wave(400000);
  Door door("auto:rel=1e-3,goal=ratio");
  const Data frame = door.compress(raw, WPR_FLOAT32);
  const Data back = door.decompress(frame, raw.size());
  for (size_t i = 0; i < raw.size(); i += 4) {
    float x, y;
    std::memcpy(&x, &raw[i], 4);
    std::memcpy(&y, &back[i], 4);
    ASSERT_LE(std::fabs(double{y} - double{x}), 1e-3 * std::fabs(double{x})) << i;
  }
  EXPECT_LT(frame.size(), Door("auto:goal=ratio").compress(raw, WPR_FLOAT32).size());
}

TEST(Lossless, DependsOnParametersAndType) {
  Door door("store");
  const auto ask = [&](const char* recipe, wpr_dtype dtype) {
    int answer = -1;
    const wpr_status status = wpr_lossless(door.get(), recipe, dtype, &answer);
    EXPECT_EQ(status == WPR_OK, answer >= 0) << recipe;
    return status == WPR_OK ? answer : static_cast<int>(status);
  };
  EXPECT_EQ(ask("bx:m=23", WPR_FLOAT32), 1);
  EXPECT_EQ(ask("bx:m=23", WPR_FLOAT64), 0);
  EXPECT_EQ(ask("bx:m=0", WPR_FLOAT64), 1);
  EXPECT_EQ(ask("bx:m=23,flush=1", WPR_FLOAT32), 0);
  EXPECT_EQ(ask("bx:m=52", WPR_FLOAT32), WPR_PARAMETER);
  EXPECT_EQ(ask("bx:m=23", WPR_INT32), WPR_PARAMETER);
  EXPECT_EQ(ask("shuffle+zstd:1", WPR_INT32), 1);
  EXPECT_EQ(ask("fre+zstd:1", WPR_FLOAT32), 0);
  EXPECT_EQ(ask("auto", WPR_FLOAT32), 1);
  EXPECT_EQ(ask("auto:rel=1e-3", WPR_FLOAT32), 0);
  EXPECT_EQ(ask("auto:rel=x", WPR_FLOAT32), WPR_PARAMETER);
  EXPECT_EQ(ask("lz5", WPR_FLOAT32), WPR_PARAMETER);
  EXPECT_EQ(ask("lz4", static_cast<wpr_dtype>(31)), WPR_PARAMETER);
}

TEST(Auto, WrongGoalsAreRefused) {
  Door door("auto");
  for (const char* recipe : {"auto:", "auto:rel", "auto:rel=x", "auto:rel=0", "auto:rel=0.9",
                             "auto:rel=1e-3,abs=1", "auto:min-speed=2", "auto:goal=best",
                             "auto:link=10", "auto:threads=0", "auto:speed=1GB/s"}) {
    if (std::string(recipe) == "auto:") {
      EXPECT_EQ(door.set("recipe", recipe), WPR_OK);
      continue;
    }
    EXPECT_EQ(door.set("recipe", recipe), WPR_PARAMETER) << recipe;
    EXPECT_NE(door.error().find("auto"), std::string::npos) << door.error();
  }
  EXPECT_EQ(door.set("link", "fast"), WPR_PARAMETER);
  EXPECT_EQ(door.set("link", "25Gbps"), WPR_OK);
  const float none = 0;
  float residual = 0;
  Data dst(1000);
  size_t size;
  EXPECT_EQ(wpr_compress_feedback(door.get(), &none, &residual, 1, dst.data(), dst.size(), &size),
            WPR_PARAMETER);
}

TEST(Auto, ASpeedIsAMixture) {
  Speed speed;
  speed.zeros = {0.01, 0, 0};
  speed.text = {0.4, 100, 100};
  speed.add_numbers({1.0, 4, 8});
  speed.add_numbers({0.5, 2, 2});
  Features features;
  EXPECT_EQ(speed.at(0.75, features).encode, 3);
  EXPECT_EQ(speed.at(0.75, features).decode, 5);
  EXPECT_NEAR(speed.at(0.255, features).encode, 1, 1e-9);  // half of the way from zeros
  EXPECT_EQ(speed.at(0, features).encode, 0);
  EXPECT_EQ(speed.at(2, features).decode, 8);
  EXPECT_EQ(speed.fastest(features).decode, 2);
  features.zero_lines = 0.5;  // the other half does not shrink
  EXPECT_EQ(speed.at(0.505, features).encode, 2);
  features.zero_lines = 1;
  EXPECT_EQ(speed.at(0.01, features).encode, 0);
  features = {.matches = 1};
  EXPECT_EQ(speed.at(0.4, features).encode, 100);
  EXPECT_NEAR(speed.at(0.205, features).encode, 50, 1e-9);  // longer repeats
  EXPECT_EQ(speed.at(0.8, features).encode, 100);
}

}  // namespace
}  // namespace wirepress
